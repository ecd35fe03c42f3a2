// ${headline}
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    const ${index} ${column} = ((${index})blockIdx.x * ${block} + (int)threadIdx.x)${times};
    if (${column} >= ${columns})
        return;
    ${place}
    ${type} ${carry}[${width}];
#pragma unroll
    for (int ${e} = 0; ${e} < ${width}; ${e}++)
        ${carry}[${e}] = ${identity};
    ${start}
    ${declare}
    // In stretches of ${stretch}, whose sums are short chains.
    for (${index} ${from} = ${begin}; ${from} < ${end}; ${from} += ${stretch}) {
        const ${index} ${to} = min(${from} + ${stretch}, ${end});
        ${type} ${sum}[${width}];
#pragma unroll
        for (int ${e} = 0; ${e} < ${width}; ${e}++)
            ${sum}[${e}] = ${identity};
        for (${index} ${chunk} = ${from}; ${chunk} < ${to}; ${chunk} += ${items}) {
            ${load}
#pragma unroll
            for (int ${m} = 0; ${m} < ${items}; ${m}++) {
                const ${index} ${p} = ${chunk} + ${m};
                if (${p} >= ${to})
                    break;
                ${packs}
#pragma unroll
                for (int ${e} = 0; ${e} < ${width}; ${e}++) {
                    ${element}
                }
                ${stores}
            }
        }
#pragma unroll
        for (int ${e} = 0; ${e} < ${width}; ${e}++)
            ${carry}[${e}] = ${combine}(${carry}[${e}], ${sum}[${e}]);
    }
    ${finish}
}

