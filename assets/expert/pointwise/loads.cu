// A full tile: all loads are issued before the first result is computed.
${declarations}
#pragma unroll
for (int ${k} = 0; ${k} < ${items}; ${k}++) {
    const ${index} ${e} = ${tile} + (${k} * ${block} + (int)threadIdx.x) * ${width};
    ${loads}
}
