// The input of the block's results, each element once; ${padding} beyond its edges.
for (int ${i} = threadIdx.x; ${i} < ${vectors}; ${i} += ${block}) {
    ${indices}
    ${element_type} *${here} = ${slab} + ${i} * ${width};
    if (${inside}) {
        ${copy}
    } else {
        ${pad}
    }
}
${wait}
__syncthreads();
