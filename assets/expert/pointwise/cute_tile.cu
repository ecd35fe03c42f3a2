if (${full}) {
    // A full tile: all copies are issued before the first result is computed.
    ${declarations}
    ${loads}
#pragma unroll
    for (int ${k} = 0; ${k} < ${items}; ${k}++) {
        ${prepare}
#pragma unroll
        for (int ${v} = 0; ${v} < ${width}; ${v}++) {
            ${compute}
        }
    }
    ${stores}
} else {
    // ${rest}: one element at a time.
    const ${index} ${end} = min(${tile} + ${tile_size}, ${total});
    for (${index} ${e} = ${tile} + (${index})threadIdx.x; ${e} < ${end}; ${e} += ${block}) {
        ${element}
    }
}
