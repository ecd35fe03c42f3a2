// task: tasks/layers/gemm_bias_gelu.task
// set: M=128 N=128 K=512
// what: two stages of cp.async, ldmatrix, mma.sync in bf16, bias and GELU at the end
#include <cuda_bf16.h>
//! require K % 8 == 0
//! launch gemm<<<[ceil_div(N, 64), ceil_div(M, 64)], 128>>>(x, w, b, y, M, N, K)
typedef __nv_bfloat16 bf16;
const int ROW = 40; // of a tile in shared memory: 32 elements and padding against bank conflicts

static __device__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// 64 rows of 32 elements, 16 bytes at a time; what lies outside becomes zero.
static __device__ void load_tile(bf16 *tile, const bf16 *p, int row, int rows, int k, int inner) {
    for (int c = threadIdx.x; c < 256; c += 128) {
        int i = c / 4, j = c % 4 * 8;
        bool in = row + i < rows && k + j < inner;
        const bf16 *from = in ? p + (long long)(row + i) * inner + k + j : p;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         shared_address(tile + i * ROW + j)),
                     "l"(from), "r"(in ? 16 : 0)
                     : "memory");
    }
}

static __device__ void multiply(const bf16 *xs, const bf16 *ws, int wm, int wn, int k,
                                float c[2][4][4]) {
    int lane = threadIdx.x % 32;
    unsigned a[2][4], b[4][2];
    for (int i = 0; i < 2; i++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
                     : "r"(shared_address(xs + (wm + i * 16 + lane % 16) * ROW + k + lane / 16 * 8))
                     : "memory");
    for (int j = 0; j < 4; j++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(b[j][0]), "=r"(b[j][1])
                     : "r"(shared_address(ws + (wn + j * 8 + lane % 8) * ROW + k + lane / 8 % 2 * 8))
                     : "memory");
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]),
                  "r"(b[j][1]));
}

extern "C" __global__ void __launch_bounds__(128)
    gemm(const bf16 *x, const bf16 *w, const bf16 *bias, bf16 *y, int m, int n, int inner) {
    __shared__ __align__(16) bf16 xs[2][64 * ROW], ws[2][64 * ROW];
    int row = blockIdx.y * 64, col = blockIdx.x * 64, steps = (inner + 31) / 32;
    int warp = threadIdx.x / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    float c[2][4][4] = {};
    load_tile(xs[0], x, row, m, 0, inner);
    load_tile(ws[0], w, col, n, 0, inner);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int s = 0; s < steps; s++) {
        if (s + 1 < steps) {
            load_tile(xs[(s + 1) % 2], x, row, m, 32 * (s + 1), inner);
            load_tile(ws[(s + 1) % 2], w, col, n, 32 * (s + 1), inner);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        multiply(xs[s % 2], ws[s % 2], wm, wn, 0, c);
        multiply(xs[s % 2], ws[s % 2], wm, wn, 16, c);
        __syncthreads();
    }
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int e = 0; e < 32; e++) {
        int u = e % 4, i = row + wm + e / 16 * 16 + g + u / 2 * 8;
        int j = col + wn + e / 4 % 4 * 8 + 2 * t + u % 2;
        if (i >= m || j >= n)
            continue;
        float v = c[e / 16][e / 4 % 4][u] + __bfloat162float(bias[j]);
        y[(long long)i * n + j] =
            __float2bfloat16_rn(0.5f * v * (1.0f + erff(v * 0.70710678f)));
    }
}
