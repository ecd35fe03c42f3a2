//% library
// Fragments of mma.sync from a tile: 16 x 32 bytes of A, 16 x 32 bytes of B (two instructions'
// worth). Rows along k are what ldmatrix expects; rows along m or n are transposed on the way,
// 16-bit elements by ldmatrix, 32-bit ones by single loads.
template <bool TRANSPOSE>
static __device__ __forceinline__ void gemm_matrix(unsigned (&r)[4], const void *from) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(from);
    if constexpr (TRANSPOSE)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
}
template <class G>
static __device__ __forceinline__ void gemm_fragment_a(unsigned (&r)[4],
                                                       const typename G::element *tile, int m,
                                                       int k) {
    constexpr int PIECE = 16 / sizeof(typename G::element);
    const int lane = threadIdx.x % 32;
    if constexpr (G::A_ALONG_K)
        gemm_matrix<false>(r, tile + G::a_at(m + lane % 16, k + lane / 16 * PIECE));
    else if constexpr (PIECE == 8)
        gemm_matrix<true>(r, tile + G::a_at(k + lane / 16 * 8 + lane % 8, m + lane / 8 % 2 * 8));
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = ((const unsigned *)tile)[G::a_at(k + lane % 4 + i / 2 * 4,
                                                    m + lane / 4 + i % 2 * 8)];
}
template <class G>
static __device__ __forceinline__ void gemm_fragment_b(unsigned (&r)[4],
                                                       const typename G::element *tile, int n,
                                                       int k) {
    constexpr int PIECE = 16 / sizeof(typename G::element);
    const int lane = threadIdx.x % 32;
    if constexpr (G::B_ALONG_K)
        gemm_matrix<false>(r, tile + G::b_at(n + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * PIECE));
    else if constexpr (PIECE == 8)
        gemm_matrix<true>(r, tile + G::b_at(k + lane / 8 % 2 * 8 + lane % 8, n + lane / 16 * 8));
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = ((const unsigned *)tile)[G::b_at(k + lane % 4 + i % 2 * 4,
                                                    n + lane / 4 + i / 2 * 8)];
}
