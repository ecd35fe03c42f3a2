//% if warp
// ${definition}: a warp has a result, whose sorted terms its lanes share.
//% else
// ${definition}: a thread has ${width} of the results, and goes through their sorted terms.
//% end
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
//% if warp
    const int lane = (int)threadIdx.x % 32;
    for (${index} element = ((${index})blockIdx.x * ${block} + (${index})threadIdx.x) / 32; element < ${total};
         element += (${index})gridDim.x * (${block} / 32)) {
//% else
    for (${index} element = (${index})blockIdx.x * ${block} + (${index})threadIdx.x; element < ${total};
         element += (${index})gridDim.x * ${block}) {
//% end
        ${coordinates}
        const ${index} bucket = ${bucket};
        const int begin = starts[bucket], end = starts[bucket + 1];
        ${type} fold[${width}];
//% if mean
        int count[${width}];
//% end
#pragma unroll
        for (int v = 0; v < ${width}; v++) {
            fold[v] = ${start};
//% if mean
            count[v] = 0;
//% end
        }
//% if warp
        for (int at = begin + lane; at < end; at += 32) {
//% else
#pragma unroll 4
        for (int at = begin; at < end; at++) {
//% end
            const ${index} term = order[at];
            ${term_coordinates}
//% each packs
            const cp_pack<${element_type}, ${width}> ${pack} = cp_load<${width}>(${from} + ${offset});
//% end
#pragma unroll
            for (int v = 0; v < ${width}; v++) {
//% if condition
                if (!(${condition}))
                    continue;
//% end
                ${take}
//% if mean
                count[v]++;
//% end
            }
        }
//% if warp
        const int v = 0;
        const ${value_type} value = ${value};
        if (lane != 0)
            continue;
        ${maps}
//% each results
        ${to}[${place}] = ${packed};
//% end
//% else
//% each results
        cp_pack<${element_type}, ${width}> ${pack};
//% end
#pragma unroll
        for (int v = 0; v < ${width}; v++) {
            const ${value_type} value = ${value};
            ${maps}
//% each results
            ${pack}.at[v] = ${packed};
//% end
        }
//% each results
        cp_store(${to} + ${place}, ${pack});
//% end
//% end
    }
}
