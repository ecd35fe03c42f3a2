//% library
static constexpr int WARPGROUPS = ${warpgroups}; // that multiply
static constexpr int PARTS = ${parts}, PRODUCTS = ${products}; // of an operand; of two of them
//% if cute
using operand = ${operand};
// Shared memory: rows of 128 bytes, swizzled by the copy engine as wgmma expects it, along k or
// along m or n.
//% if a_across
using LayoutA = decltype(cute::tile_to_shape(cute::GMMA::Layout_MN_SW128_Atom<operand>{},
                                             cute::Shape<cute::Int<BM>, cute::Int<BK>>{},
                                             cute::Step<cute::_2, cute::_1>{}));
//% else
using LayoutA = decltype(cute::tile_to_shape(cute::GMMA::Layout_K_SW128_Atom<operand>{},
                                             cute::Shape<cute::Int<BM>, cute::Int<BK>>{}));
//% end
//% if b_across
using LayoutB = decltype(cute::tile_to_shape(cute::GMMA::Layout_MN_SW128_Atom<operand>{},
                                             cute::Shape<cute::Int<BN>, cute::Int<BK>>{},
                                             cute::Step<cute::_2, cute::_1>{}));
//% else
using LayoutB = decltype(cute::tile_to_shape(cute::GMMA::Layout_K_SW128_Atom<operand>{},
                                             cute::Shape<cute::Int<BN>, cute::Int<BK>>{}));
//% end
// 64 rows of A and all columns of the tile.
//% if tf32
using Atom = cute::SM90_64x${tile_n}x8_F32TF32TF32_SS_TN<>;
//% else
using Atom = cute::SM90_64x${tile_n}x16_F32${atom}_SS<${a_major}, ${b_major}>;
//% end
using Mma = cute::TiledMMA<cute::MMA_Atom<Atom>,
                           cute::Layout<cute::Shape<cute::Int<WARPGROUPS>, cute::_1, cute::_1>>>;
//% end
