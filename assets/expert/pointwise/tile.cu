if (${full}) {
    ${loads}
#pragma unroll
    for (int ${k} = 0; ${k} < ${items}; ${k}++) {
        const ${index} ${e} = ${tile} + (${k} * ${block} + (int)threadIdx.x) * ${width};
        ${prepare}
        ${results}
#pragma unroll
        for (int ${v} = 0; ${v} < ${width}; ${v}++) {
            ${compute}
        }
        ${stores}
    }
} else {
    // ${rest}: one element at a time.
    const ${index} ${end} = min(${tile} + ${tile_size}, ${total});
    for (${index} ${e} = ${tile} + (${index})threadIdx.x; ${e} < ${end}; ${e} += ${block}) {
        ${element}
    }
}
