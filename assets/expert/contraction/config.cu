// ${about}
struct ${name} {
    using element = ${element};
    static constexpr int BM = ${bm}, BN = ${bn}, BK = ${bk}, STAGES = ${stages};
    static constexpr int FOLDS = ${folds}, NA = ${na}, NB = ${nb}; // sums; tiles of each side
    static constexpr int A_TILE = ${a_tile}, B_TILE = ${b_tile}; // bytes
    static constexpr int STAGE = NA * A_TILE + NB * B_TILE, CN = BN + 8;
    static constexpr int PROMOTE = ${promote}; // tiles of k in one sum of accumulators; 0: all
    ${thread}
    ${places}
};

