// ${headline}
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    __shared__ ${type} ${totals}[${warps}];
    const int ${lane} = threadIdx.x % 32;
    const int ${warp} = threadIdx.x / 32;
    ${place}
    const int ${first} = ${first_value};
    ${type} ${sum}[${width}];
#pragma unroll
    for (int ${e} = 0; ${e} < ${width}; ${e}++)
        ${sum}[${e}] = ${identity};
    ${declare}
    for (${index} ${chunk} = ${begin}; ${chunk} < ${end}; ${chunk} += ${chunk_size}) {
        ${load}
#pragma unroll
        for (int ${m} = 0; ${m} < ${items}; ${m}++) {
            const ${index} ${p} = ${chunk} + ${first} + ${m} * ${step};
#pragma unroll
            for (int ${e} = 0; ${e} < ${width}; ${e}++)
                ${sum}[${e}] = ${combine}(${sum}[${e}], ${term_value});
        }
    }
    ${type} ${total} = ${sum}[0];
#pragma unroll
    for (int ${e} = 1; ${e} < ${width}; ${e}++)
        ${total} = ${combine}(${total}, ${sum}[${e}]);
    ${total} = ${warp_scan}(${total});
    if (${lane} == 31)
        ${totals}[${warp}] = ${total};
    __syncthreads();
    if (${warp} > 0)
        return;
    ${total} = ${warp_scan}(${lane} < ${warps} ? ${totals}[${lane}] : ${identity});
    if (${lane} == 31)
        ${parts}[blockIdx.x] = ${total};
}

