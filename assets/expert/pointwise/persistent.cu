extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    // As many blocks as the GPU holds at once; each takes every gridDim.x-th tile.
    for (${index} ${tile} = (${index})blockIdx.x * ${tile_size}; ${tile} < ${total};
         ${tile} += (${index})gridDim.x * ${tile_size}) {
        ${body}
    }
}
