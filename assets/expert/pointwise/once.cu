// A block has a tile of ${tile_size} elements.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    const ${index} ${tile} = (${index})blockIdx.x * ${tile_size};
    ${body}
}
