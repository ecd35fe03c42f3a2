//% library
static constexpr int WARPGROUPS = ${warpgroups}; // that multiply
static constexpr int PARTS = ${parts}, PRODUCTS = ${products}; // of an operand; of two of them
//% if cute
using operand = ${operand};
// Shared memory: rows of 128 bytes along k, swizzled by the copy engine as wgmma expects it.
using Rows = cute::GMMA::Layout_K_SW128_Atom<operand>;
using LayoutA = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<BM>, cute::Int<BK>>{}));
using LayoutB = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<BN>, cute::Int<BK>>{}));
// 64 rows of A and all columns of the tile.
//% if tf32
using Atom = cute::SM90_64x${tile_n}x8_F32TF32TF32_SS_TN<>;
//% else
using Atom = cute::SM90_64x${tile_n}x16_F32${atom}_SS<cute::GMMA::Major::K, cute::GMMA::Major::K>;
//% end
using Mma = cute::TiledMMA<cute::MMA_Atom<Atom>,
                           cute::Layout<cute::Shape<cute::Int<WARPGROUPS>, cute::_1, cute::_1>>>;
//% end
