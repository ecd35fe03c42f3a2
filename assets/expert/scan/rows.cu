// ${headline}
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    ${shared}
    const int ${lane} = threadIdx.x % 32;
    const int ${warp} = threadIdx.x / 32;
    ${place}
    const int ${first} = ${first_value};
    ${type} ${carry} = ${identity}; // of all that comes before the chunk
    ${start}
    ${declare}
    ${load_first}
    for (${index} ${chunk} = ${begin}; ${chunk} < ${end}; ${chunk} += ${chunk_size}) {
        ${load}
        // Within each vector.
        ${type} ${sum}[${items}][${width}];
#pragma unroll
        for (int ${m} = 0; ${m} < ${items}; ${m}++) {
            const ${index} ${p} = ${chunk} + ${first} + ${m} * ${step};
#pragma unroll
            for (int ${e} = 0; ${e} < ${width}; ${e}++) {
                const ${type} ${term} = ${term_value};
                ${sum}[${m}][${e}] = ${e} == 0 ? ${term} : ${combine}(${sum}[${m}][${e} - 1], ${term});
            }
        }
        // Over the lanes, one row of vectors after the other.
        ${type} ${before}[${items}], ${total} = ${identity};
#pragma unroll
        for (int ${m} = 0; ${m} < ${items}; ${m}++) {
            const ${type} ${upto} = ${warp_scan}(${sum}[${m}][${last}]);
            const ${type} ${left} = __shfl_up_sync(0xffffffffu, ${upto}, 1);
            ${before}[${m}] = ${lane} == 0 ? ${total} : ${combine}(${total}, ${left});
            ${total} = ${combine}(${total}, __shfl_sync(0xffffffffu, ${upto}, 31));
        }
        ${across}
#pragma unroll
        for (int ${m} = 0; ${m} < ${items}; ${m}++) {
            const ${index} ${p} = ${chunk} + ${first} + ${m} * ${step};
            if (${p} >= ${end})
                break;
            const ${type} ${base} = ${combine}(${offset}, ${before}[${m}]);
            ${packs}
#pragma unroll
            for (int ${e} = 0; ${e} < ${width}; ${e}++) {
                const ${value_type} ${value} = ${value_text};
                ${element}
            }
            ${stores}
        }
        ${advance}
        ${rotate}
    }
}

