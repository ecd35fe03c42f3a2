// task: second_linear.task
// tries: honest: mma.sync m16n8k16 in f16, tiles two ahead by cp.async with zero fill at the edges
// should: accepted
// device: both
//! require K % 8 == 0
//! launch k<<<[ceil_div(N, 8), ceil_div(M, 16)], 32>>>(x, w, b, y, M, N, K)
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, const __half *w, const __half *b, __half *y, int m, int n, int kk) {
    __shared__ alignas(16) __half as[2][16][24], bs[2][8][24];
    int t = threadIdx.x, row = blockIdx.y * 16, col = blockIdx.x * 8;
    auto one = [&](__half *to, const __half *base, int r, int rows, int k0) {
        bool in = r < rows && k0 < kk;
        const __half *from = in ? base + (int64_t)r * kk + k0 : base;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(in ? 16 : 0) : "memory");
    };
    auto copy = [&](int i, int k0) {
        one(&as[i][t / 2][t % 2 * 8], x, row + t / 2, m, k0 + t % 2 * 8);
        if (t < 16)
            one(&bs[i][t / 2][t % 2 * 8], w, col + t / 2, n, k0 + t % 2 * 8);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float c[4] = {0, 0, 0, 0};
    int g = t / 4, q = t % 4 * 2;
    copy(0, 0);
    for (int k0 = 0, i = 0; k0 < kk; k0 += 16, i ^= 1) {
        copy(i ^ 1, k0 + 16);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncwarp();
        unsigned a0 = *(unsigned *)&as[i][g][q], a1 = *(unsigned *)&as[i][g + 8][q];
        unsigned a2 = *(unsigned *)&as[i][g][q + 8], a3 = *(unsigned *)&as[i][g + 8][q + 8];
        unsigned b0 = *(unsigned *)&bs[i][g][q], b1 = *(unsigned *)&bs[i][g][q + 8];
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
        __syncwarp();
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    for (int e = 0; e < 4; e++) {
        int r = row + g + e / 2 * 8, s = col + q + e % 2;
        if (r < m && s < n) {
            float v = c[e] + __half2float(b[s]);
            y[(int64_t)r * n + s] = __float2half(v > 0 || v != v ? v : 0);
        }
    }
}
