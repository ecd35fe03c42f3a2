//% library
// Tiles of ${kernel}: ${tile_m} x ${tile_n} results of ${threads} threads, k by ${tile_k}.
struct ${name} {
    using element = ${type}; // as it is loaded
    static constexpr int BM = ${tile_m}, BN = ${tile_n}, BK = ${tile_k}, STAGES = ${stages};
    static constexpr int FOLDS = ${folds}, NA = ${operands_m}, NB = ${operands_n}; // sums; tiles of each side
    static constexpr int A_TILE = ${bytes_m}, B_TILE = ${bytes_n}; // bytes
    static constexpr int STAGE = NA * A_TILE + NB * B_TILE, CN = BN + 8;
    static constexpr int PROMOTE = ${promote}; // tiles of k in one sum of accumulators; 0: all
    ${math}
    //% if a_at
    // Where a row's element lies, ${layout} against bank conflicts.
    static __device__ __forceinline__ int a_at(int row, int col) {
        return ${a_at};
    }
    static __device__ __forceinline__ int b_at(int row, int col) {
        return ${b_at};
    }
    //% end
    // All threads that have results meet.
    static __device__ __forceinline__ void meet() {
        //% if producers
        asm volatile("bar.sync 1, %0;" ::"n"(${threads}) : "memory");
        //% else
        __syncthreads();
        //% end
    }
};

