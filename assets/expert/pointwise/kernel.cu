//% each outputs
// ${definition}, for one element.
static __device__ __forceinline__ ${type} ${function}(${parameters}) {
    ${locals}
    return ${value};
}

//% end
//% if transposed
${transposed_lines}

//% else
//% if naive
// A thread has an element.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    const ${index} element = (${index})blockIdx.x * ${block} + (${index})threadIdx.x;
    if (element >= ${total})
        return;
    ${coordinates}
//% each outputs
    ${new_element}
//% end
//% each outputs
    ${store_element}
//% end
}
//% else
//% if by_rows
// A block has a tile of kTile elements of a row; its numbers in the grid say which row.
//% else
//% if not persistent
// A block has a tile of kTile elements.
//% end
//% end
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    constexpr int kBlock = ${block}; // threads
    constexpr int kWidth = ${width}; // elements in a vector
    constexpr int kItems = ${items}; // vectors a thread
    constexpr int kTile = kBlock * kWidth * kItems; // elements of a block
//% if persistent
    // As many blocks as the GPU holds at once; each takes every gridDim.x-th tile.
    for (${index} tile = (${index})blockIdx.x * kTile; tile < ${total};
         tile += (${index})gridDim.x * kTile) {
        ${tile_lines}
    }
//% else
//% if by_rows
    ${row_lines}
    const long long base = ${base}; // of the row
    const int tile = (int)${tile_number} * kTile;
//% else
    const ${index} tile = (${index})blockIdx.x * kTile;
//% end
    ${tile_lines}
//% end
}
//% end
//% end
