// bf16 products with mma.sync: a block BM by BN, its warps WM by WN, BK of the inner dimension at a
// time; STAGES pieces under way by cp.async (1: copied and waited for). Rows in shared memory are
// PAD elements longer than BK.
// default: BM = 128
// default: BN = 128
// default: BK = 32
// default: WM = 64
// default: WN = 32
// default: STAGES = 3
// default: PAD = 8
//! let THREADS = BM*BN/(WM*WN)*32
//! require M % BM == 0
//! require N % BN == 0
//! require K % BK == 0
//! require K / BK >= STAGES
//! require aligned(a, 16)
//! require aligned(b, 16)
//! launch hgemm<<<[N/BN, M/BM], THREADS, STAGES*(BM+BN)*(BK+PAD)*2>>>(a, b, c, M, N, K)
#include <cuda_bf16.h>
#define THREADS (BM * BN / (WM * WN) * 32)
#define LONG    (BK + PAD)

static __device__ void copy16(void *to, const void *from) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

static __device__ void piece(__nv_bfloat16 *to, const __nv_bfloat16 *from, int rows, int inner) {
    for (int e = threadIdx.x; e < rows * BK / 8; e += THREADS) {
        int i = e / (BK / 8), k = e % (BK / 8) * 8;
        copy16(to + i * LONG + k, from + (long long)i * inner + k);
    }
}

static __device__ void load4(unsigned *r, const __nv_bfloat16 *p) {
    unsigned at = (unsigned)__cvta_generic_to_shared(p);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hgemm(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int m, int n, int inner) {
    extern __shared__ __nv_bfloat16 smem[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = blockIdx.y * BM, col = blockIdx.x * BN;
    int wi = warp / (BN / WN) * WM, wj = warp % (BN / WN) * WN;
    float acc[WM / 16][WN / 8][4] = {{{0.0f}}};
    int pieces = inner / BK;
    for (int s = 0; s < STAGES - 1; s++) {
        __nv_bfloat16 *at = smem + s * (BM + BN) * LONG;
        piece(at, a + (long long)row * inner + s * BK, BM, inner);
        piece(at + BM * LONG, b + (long long)col * inner + s * BK, BN, inner);
        asm volatile("cp.async.commit_group;");
    }
    for (int p = 0; p < pieces; p++) {
        int next = p + STAGES - 1;
        if (STAGES == 1)
            __syncthreads();
        else {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
            __syncthreads();
        }
        if (next < pieces) {
            __nv_bfloat16 *at = smem + next % STAGES * (BM + BN) * LONG;
            piece(at, a + (long long)row * inner + next * BK, BM, inner);
            piece(at + BM * LONG, b + (long long)col * inner + next * BK, BN, inner);
        }
        asm volatile("cp.async.commit_group;");
        if (STAGES == 1) {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
            __syncthreads();
        }
        const __nv_bfloat16 *as = smem + p % STAGES * (BM + BN) * LONG, *bs = as + BM * LONG;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned x[WM / 16][4], y[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
                load4(x[i], as + (wi + i * 16 + lane % 16) * LONG + k + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < WN / 16; j++)
                load4(y[j], bs + (wj + j * 16 + lane % 8 + lane / 16 * 8) * LONG + k +
                                lane / 8 % 2 * 8);
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int j = 0; j < WN / 8; j++)
                    asm volatile(
                        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                        : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]),
                          "+f"(acc[i][j][3])
                        : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]),
                          "r"(y[j / 2][j % 2 * 2]), "r"(y[j / 2][j % 2 * 2 + 1]));
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int y = row + wi + i * 16 + lane / 4 + h * 8, z = col + wj + j * 8 + lane % 4 * 2;
                *(float2 *)&c[(long long)y * n + z] =
                    make_float2(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
            }
}
