// task: tasks/layers/gemm_residual.task
// set: M=128 N=128 K=512
// what: mma.sync in bf16 with fragments straight from global memory
#include <cuda_bf16.h>
//! launch gemm<<<[ceil_div(N, 32), ceil_div(M, 16)], 128>>>(x, w, r, y, M, N, K)
static __device__ unsigned pair(const __nv_bfloat16 *p, int row, int rows, int k, int inner) {
    unsigned short lo = 0, hi = 0;
    if (row < rows && k < inner)
        lo = __bfloat16_as_ushort(p[(long long)row * inner + k]);
    if (row < rows && k + 1 < inner)
        hi = __bfloat16_as_ushort(p[(long long)row * inner + k + 1]);
    return lo | (unsigned)hi << 16;
}

extern "C" __global__ void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *w,
                                const __nv_bfloat16 *r, __nv_bfloat16 *y, int m, int n, int inner) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int row = blockIdx.y * 16 + g, col = blockIdx.x * 32 + threadIdx.x / 32 * 8;
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < inner; k += 16) {
        unsigned a[4], b[2];
        for (int u = 0; u < 4; u++)
            a[u] = pair(x, row + u % 2 * 8, m, k + 2 * t + u / 2 * 8, inner);
        for (int u = 0; u < 2; u++)
            b[u] = pair(w, col + g, n, k + 2 * t + u * 8, inner);
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    for (int u = 0; u < 4; u++) {
        int i = row + u / 2 * 8, j = col + 2 * t + u % 2;
        if (i < m && j < n) {
            long long at = (long long)i * n + j;
            y[at] = __float2bfloat16_rn(c[u] + __bfloat162float(r[at]));
        }
    }
}
