//% library
// What becomes of a block's sums: they go to shared memory, FOLDS tiles of BM rows of CN floats, in
// place of the ring of tiles.
template <class G> struct gemm_stage {
    unsigned char *smem;
    __device__ __forceinline__ void begin() const { G::meet(); }
    __device__ __forceinline__ void end() const { G::meet(); }
    //% if cute
    // A fragment of a TiledMMA's thread.
    template <class Slice, class Fragment>
    __device__ __forceinline__ void fragment(int f, const Slice &part, const Fragment &sums) const {
        using namespace cute;
        auto results = make_tensor(make_smem_ptr((float *)smem),
                                   Layout<Shape<Int<G::BM>, Int<G::BN>, Int<G::FOLDS>>,
                                          Stride<Int<G::CN>, _1, Int<G::BM * G::CN>>>{});
        auto mine = part.partition_C(results(_, _, f));
        // One by one: a copy of whole vectors would have accumulators moved while wgmma writes them.
#pragma unroll
        for (int i = 0; i < size(mine); i++)
            mine(i) = sums(i);
    }
    //% else
    __device__ __forceinline__ void one(int f, int row, int col, float sum) const {
        ((float *)smem)[(f * G::BM + row) * G::CN + col] = sum;
    }
    // A warp's sums from (m, n) on, 16 x 8 at a time, as m16n8 instructions leave them: a lane has
    // two neighbours in each of two rows.
    template <int MI, int NI>
    __device__ __forceinline__ void mma(int m, int n, int lane,
                                        const float (*sums)[MI][NI][4]) const {
#pragma unroll
        for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < NI; j++)
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const float(&c)[4] = sums[f][i][j];
                        float *to =
                            (float *)smem + (f * G::BM + m + i * 16 + h * 8 + lane / 4) * G::CN;
                        *(float2 *)(to + n + j * 8 + lane % 4 * 2) =
                            make_float2(c[2 * h], c[2 * h + 1]);
                    }
    }
    // A warpgroup's sums from row m on, 64 rows at a time, as wgmma leaves them.
    template <int MI, int N>
    __device__ __forceinline__ void wgmma(int m, const float (*sums)[MI][N]) const {
        const int lane = threadIdx.x % 32, row = m + threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
        for (int i = 0; i < G::FOLDS * MI * N; i += 2) {
            const int f = i / N / MI, r = i / N % MI, c = i % N;
            float *to = (float *)smem + (f * G::BM + row + r * 64 + c / 2 % 2 * 8) * G::CN;
            *(float2 *)(to + c / 4 * 8 + lane % 4 * 2) =
                make_float2(sums[f][r][c], sums[f][r][c + 1]);
        }
    }
    //% end
};
