//% library
static constexpr int WARPGROUPS = ${warpgroups}; // that multiply
static constexpr int PARTS = ${parts}, PRODUCTS = ${products}; // of an operand; of two of them
//% if cute
using operand = ${operand};
// Shared memory: rows of 128 bytes along k, swizzled by the copy engine as wgmma expects it.
using Rows = cute::GMMA::Layout_K_SW128_Atom<operand>;
using LayoutA = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<BM>, cute::Int<BK>>{}));
using LayoutB = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<BN>, cute::Int<BK>>{}));
using Mma = cute::TiledMMA<cute::MMA_Atom<${atom}>,
                           cute::Layout<cute::Shape<cute::Int<WARPGROUPS>, cute::_1, cute::_1>>>;
//% end
