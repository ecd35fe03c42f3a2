// A thread ${does} ${what}.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    const ${index} column = ((${index})blockIdx.x * ${block} + (int)threadIdx.x) * ${width};
    if (column >= ${columns})
        return;
//% if parts
    const ${index} begin = (${index})blockIdx.y * ${length};
    const ${index} end = min(begin + ${length}, ${extent});
//% end
//% if writes_parts
    ${type} *totals_of_parts = (${type} *)memory_of_parts;
//% end
//% if reads_parts
    const ${type} *totals_of_parts = (const ${type} *)memory_of_parts;
//% end
    ${coordinates}
    ${type} carry[${width}];
#pragma unroll
    for (int elem = 0; elem < ${width}; elem++)
        carry[elem] = ${identity};
//% if starts_behind
    for (int before = 0; before < (int)blockIdx.y; before++)
#pragma unroll
        for (int elem = 0; elem < ${width}; elem++)
            carry[elem] =
                ${combine}(carry[elem], totals_of_parts[before * ${columns} + column + elem]);
//% end
//% each streams
    cp_pack<${element_type}, ${width}> ${now}[${items}];
//% end
    // In stretches of ${stretch}, whose sums are short chains.
    for (${index} from = ${begin}; from < ${end}; from += ${stretch}) {
        const ${index} to = min(from + ${stretch}, ${end});
        ${type} sum[${width}];
#pragma unroll
        for (int elem = 0; elem < ${width}; elem++)
            sum[elem] = ${identity};
        for (${index} chunk = from; chunk < to; chunk += ${items}) {
//% if streams
#pragma unroll
            for (int item = 0; item < ${items}; item++) {
                const ${index} position = chunk + item;
                if (position < to) {
//% each streams
                    ${now}[item] = cp_load<${width}>(${from} + ${offset});
//% end
                }
            }
//% end
#pragma unroll
            for (int item = 0; item < ${items}; item++) {
                const ${index} position = chunk + item;
                if (position >= to)
                    break;
//% each results
                cp_pack<${element_type}, ${width}> ${pack};
//% end
#pragma unroll
                for (int elem = 0; elem < ${width}; elem++) {
//% if not exclusive
                    sum[elem] = ${combine}(sum[elem], ${term});
//% end
//% if results
//% if tuple
                    const ${type} state = ${state};
//% end
                    const ${result_type} value = ${value};
                    ${maps}
//% each results
                    ${pack}.at[${element}] = ${packed};
//% end
//% end
//% if exclusive
                    sum[elem] = ${combine}(sum[elem], ${term});
//% end
                }
//% each results
                cp_store(${to} + ${place}, ${pack});
//% end
            }
        }
#pragma unroll
        for (int elem = 0; elem < ${width}; elem++)
            carry[elem] = ${combine}(carry[elem], sum[elem]);
    }
//% if totals
#pragma unroll
    for (int elem = 0; elem < ${width}; elem++)
        totals_of_parts[(${index})blockIdx.y * ${columns} + column + elem] = carry[elem];
//% end
}

