// task: ../../tasks/smoke/matmul.task
// tries: honest: operands in two parts of bf16 and three products in the tensor cores
// proof: none; it is right
// should: accepted
// device: both
//! launch product<<<[ceil_div(N, 8), ceil_div(M, 16)], 32>>>(A, B, C, M, N, K)
#include <cuda_bf16.h>
__device__ void split(float x, float y, unsigned *high, unsigned *low) {
    __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
    __nv_bfloat162 l = __floats2bfloat162_rn(x - __bfloat162float(h.x), y - __bfloat162float(h.y));
    *high = *(unsigned *)&h;
    *low = *(unsigned *)&l;
}
__device__ void multiply(float *s, const unsigned *a, const unsigned *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4, row = blockIdx.y * 16 + g, col = blockIdx.x * 8;
    float s[4] = {0, 0, 0, 0};
    for (int x = 0; x < k; x += 16) {
        unsigned ah[4], al[4], bh[2], bl[2];
        for (int u = 0; u < 4; u++) {
            int i = row + (u & 1) * 8, j = x + 2 * t + (u >> 1) * 8;
            float p = i < m && j < k ? a[(int64_t)i * k + j] : 0.0f;
            float q = i < m && j + 1 < k ? a[(int64_t)i * k + j + 1] : 0.0f;
            split(p, q, &ah[u], &al[u]);
        }
        for (int u = 0; u < 2; u++) {
            int i = x + 2 * t + u * 8, j = col + g;
            float p = i < k && j < n ? b[(int64_t)i * n + j] : 0.0f;
            float q = i + 1 < k && j < n ? b[(int64_t)(i + 1) * n + j] : 0.0f;
            split(p, q, &bh[u], &bl[u]);
        }
        multiply(s, al, bh);
        multiply(s, ah, bl);
        multiply(s, ah, bh);
    }
    for (int u = 0; u < 4; u++) {
        int i = row + (u >> 1) * 8, j = col + 2 * t + (u & 1);
        if (i < m && j < n)
            c[(int64_t)i * n + j] = s[u];
    }
}
