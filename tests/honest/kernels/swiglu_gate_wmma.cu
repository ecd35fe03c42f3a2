// task: tasks/layers/swiglu_mlp_gate.task
// set: M=64 N=128 K=256
// what: two products through nvcuda::wmma, one gating the other
#include <cuda_bf16.h>
#include <mma.h>
//! launch gate<<<[ceil_div(N, 16), ceil_div(M, 16)], 32>>>(x, gate, up, y, M, N, K)
typedef __nv_bfloat16 bf16;

static __device__ void load(bf16 *tile, const bf16 *p, int row, int rows, int k, int inner) {
    for (int e = threadIdx.x; e < 256; e += 32) {
        int i = row + e / 16, j = k + e % 16;
        tile[e] = i < rows && j < inner ? p[(long long)i * inner + j] : __float2bfloat16(0.0f);
    }
}

extern "C" __global__ void gate(const bf16 *x, const bf16 *g, const bf16 *u, bf16 *y, int m, int n,
                                int inner) {
    using namespace nvcuda::wmma;
    __shared__ __align__(32) bf16 xs[256], gs[256], us[256];
    __shared__ __align__(32) float first[256], second[256];
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    fragment<matrix_a, 16, 16, 16, bf16, row_major> a;
    fragment<matrix_b, 16, 16, 16, bf16, col_major> b;
    fragment<accumulator, 16, 16, 16, float> c, d;
    fill_fragment(c, 0.0f);
    fill_fragment(d, 0.0f);
    for (int k = 0; k < inner; k += 16) {
        load(xs, x, row, m, k, inner);
        load(gs, g, col, n, k, inner);
        load(us, u, col, n, k, inner);
        __syncwarp();
        load_matrix_sync(a, xs, 16);
        load_matrix_sync(b, gs, 16);
        mma_sync(c, a, b, c);
        load_matrix_sync(b, us, 16);
        mma_sync(d, a, b, d);
        __syncwarp();
    }
    store_matrix_sync(first, c, 16, mem_row_major);
    store_matrix_sync(second, d, 16, mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32) {
        int i = row + e / 16, j = col + e % 16;
        if (i < m && j < n)
            y[(long long)i * n + j] =
                __float2bfloat16_rn(first[e] / (1.0f + expf(-first[e])) * second[e]);
    }
}
