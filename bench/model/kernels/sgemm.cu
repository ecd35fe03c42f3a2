// fp32 products: a thread TM by TN elements of a block's BM by BN, BK of the inner dimension at a
// time through shared memory, whose rows of A are PAD longer; PREFETCH loads the next piece into
// registers while this one is multiplied. NAIVE: an element a thread, straight from memory.
// default: BM = 64
// default: BN = 64
// default: BK = 16
// default: TM = 4
// default: TN = 4
// default: PAD = 4
// default: PREFETCH = 0
// default: NAIVE = 0
//! let THREADS = BM*BN/(TM*TN)
//! require M % BM == 0
//! require N % BN == 0
//! require K % BK == 0
//! require aligned(a, 16)
//! require aligned(b, 16)
//! launch sgemm<<<[N/BN, M/BM], THREADS>>>(a, b, c, M, N, K)
#define THREADS (BM * BN / (TM * TN))
#define EACH_A  (BM * BK / THREADS)
#define EACH_B  (BK * BN / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm(const float *a, const float *b, float *c, int m, int n, int inner) {
    int t = threadIdx.x, row = blockIdx.y * BM, col = blockIdx.x * BN;
#if NAIVE
    for (int e = t; e < BM * BN; e += THREADS) {
        int i = row + e / BN, j = col + e % BN;
        float sum = 0.0f;
        for (int k = 0; k < inner; k++)
            sum += a[(long long)i * inner + k] * b[(long long)k * n + j];
        c[(long long)i * n + j] = sum;
    }
#else
    __shared__ float as[BK][BM + PAD], bs[BK][BN];
    float acc[TM][TN] = {{0.0f}}, ra[EACH_A], rb[EACH_B];
    int ti = t / (BN / TN) * TM, tj = t % (BN / TN) * TN;
    for (int k = 0; k < inner; k += BK) {
        if (!PREFETCH || k == 0) {
#pragma unroll
            for (int u = 0; u < EACH_A; u++) {
                int e = t + u * THREADS;
                ra[u] = a[(long long)(row + e / BK) * inner + k + e % BK];
            }
#pragma unroll
            for (int u = 0; u < EACH_B; u++) {
                int e = t + u * THREADS;
                rb[u] = b[(long long)(k + e / BN) * n + col + e % BN];
            }
        }
#pragma unroll
        for (int u = 0; u < EACH_A; u++) {
            int e = t + u * THREADS;
            as[e % BK][e / BK] = ra[u];
        }
#pragma unroll
        for (int u = 0; u < EACH_B; u++) {
            int e = t + u * THREADS;
            bs[e / BN][e % BN] = rb[u];
        }
        __syncthreads();
        if (PREFETCH && k + BK < inner) {
#pragma unroll
            for (int u = 0; u < EACH_A; u++) {
                int e = t + u * THREADS;
                ra[u] = a[(long long)(row + e / BK) * inner + k + BK + e % BK];
            }
#pragma unroll
            for (int u = 0; u < EACH_B; u++) {
                int e = t + u * THREADS;
                rb[u] = b[(long long)(k + BK + e / BN) * n + col + e % BN];
            }
        }
#pragma unroll
        for (int l = 0; l < BK; l++) {
            float x[TM], y[TN];
#pragma unroll
            for (int i = 0; i < TM; i++)
                x[i] = as[l][ti + i];
#pragma unroll
            for (int j = 0; j < TN; j++)
                y[j] = bs[l][tj + j];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            c[(long long)(row + ti + i) * n + col + tj + j] = acc[i][j];
#endif
}
