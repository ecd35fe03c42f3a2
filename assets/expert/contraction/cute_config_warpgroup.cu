// ${about}
struct ${name} {
    using operand = ${operand};
    static constexpr int BM = ${bm}, BN = ${bn}, BK = ${bk}, STAGES = ${stages};
    static constexpr int FOLDS = ${folds}, NA = ${na}, NB = ${nb}; // sums; tiles of each side
    static constexpr int A_TILE = ${a_tile}, B_TILE = ${b_tile}; // bytes
    static constexpr int STAGE = NA * A_TILE + NB * B_TILE, CN = BN + 8;
    static constexpr int PROMOTE = ${promote}; // tiles of k in one sum of accumulators; 0: all
    static constexpr int WARPGROUPS = ${warpgroups}; // that multiply
    static constexpr int PARTS = ${parts}, PRODUCTS = ${products}; // of an operand; of two of them
    // Shared memory: rows of 128 bytes along k, swizzled by the copy engine as wgmma expects it.
    using Rows = cute::GMMA::Layout_K_SW128_Atom<operand>;
    using LayoutA = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<BM>, cute::Int<BK>>{}));
    using LayoutB = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<BN>, cute::Int<BK>>{}));
    using Mma = cute::TiledMMA<cute::MMA_Atom<${atom}>,
                               cute::Layout<cute::Shape<cute::Int<WARPGROUPS>, cute::_1, cute::_1>>>;
};

