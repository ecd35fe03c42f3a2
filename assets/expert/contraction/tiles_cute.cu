//% library
using operand = ${operand}; // as it is multiplied: the same bits
//% each sides
// Shared memory: rows as they are loaded, and as (m or n, k).
using Swizzle${side} = ${swizzle}; // of bytes
using Rows${side} = ${rows};
using Layout${side} = ${layout};
static __device__ __forceinline__ int ${place}(int row, int col) {
    return Swizzle${side}{}(Rows${side}{}(row, col) * (int)sizeof(element)) / (int)sizeof(element);
}
using Fetch${side} = ${fetch}; // from shared memory to registers; void: as it lies
//% end
//% if warps
// ${down} x ${across} warps, 16 x 16 results each at a time: two instructions along n share one
// ldmatrix.
using Mma = cute::TiledMMA<cute::MMA_Atom<${atom}>,
                           cute::Layout<cute::Shape<cute::Int<${down}>, cute::Int<${across}>, cute::_1>>,
                           cute::Tile<cute::Int<${tile_m}>, cute::Int<${tile_n}>, cute::Int<${step}>>>;
//% else
// ${down} x ${across} threads, each with ${tm} x ${tn} results, four neighbours at a time.
using Mma = cute::TiledMMA<
    cute::MMA_Atom<${atom}>,
    cute::Layout<cute::Shape<cute::Int<${down}>, cute::Int<${across}>, cute::_1>,
                 cute::Stride<cute::Int<${across}>, cute::_1, cute::_0>>,
    cute::Tile<cute::Layout<cute::Shape<cute::Int<${down}>, cute::_4>, cute::Stride<cute::_4, cute::_1>>,
               cute::Layout<cute::Shape<cute::Int<${across}>, cute::_4>, cute::Stride<cute::_4, cute::_1>>,
               cute::_1>>;
//% end
