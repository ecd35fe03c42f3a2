// ${about}
struct ${name} {
    using element = ${element};  // as it is loaded
    using operand = ${operand}; // as it is multiplied: the same bits
    static constexpr int BM = ${bm}, BN = ${bn}, BK = ${bk}, STAGES = ${stages};
    static constexpr int FOLDS = ${folds}, NA = ${na}, NB = ${nb}; // sums; tiles of each side
    static constexpr int A_TILE = ${a_tile}, B_TILE = ${b_tile}; // bytes
    static constexpr int STAGE = NA * A_TILE + NB * B_TILE, CN = BN + 8;
    static constexpr int PROMOTE = ${promote}; // tiles of k in one sum of accumulators; 0: all
    // Shared memory, ${layout}: rows as they are loaded, and as (m or n, k).
    using SwizzleA = ${swizzle_a}; // of bytes
    using SwizzleB = ${swizzle_b};
    using RowsA = ${rows_a};
    using RowsB = ${rows_b};
    using LayoutA = ${layout_a};
    using LayoutB = ${layout_b};
    static __device__ __forceinline__ int a_at(int row, int col) {
        return SwizzleA{}(RowsA{}(row, col) * (int)sizeof(element)) / (int)sizeof(element);
    }
    static __device__ __forceinline__ int b_at(int row, int col) {
        return SwizzleB{}(RowsB{}(row, col) * (int)sizeof(element)) / (int)sizeof(element);
    }
    // ${threads}
    using Mma = cute::TiledMMA<cute::MMA_Atom<${atom}>, ${atoms}, ${permutation}>;
    using FetchA = ${fetch_a}; // from shared memory to registers; void: as it lies
    using FetchB = ${fetch_b};
};

