// task: ../../tasks/smoke/matmul.task
// tries: fp32 bits go to the tensor cores as they are, so that operands are truncated to tf32, not rounded
// proof: docs/TASKS.md: truncated operands fail class tf32; on positive data all errors have one sign
// data: in A[M,K] : f32 ~ uniform(1, 2); in B[K,N] : f32 ~ uniform(1, 2)
// should: inaccurate wrong
// device: both
//! launch product<<<[ceil_div(N, 8), ceil_div(M, 16)], 32>>>(A, B, C, M, N, K)
extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4, row = blockIdx.y * 16 + g, col = blockIdx.x * 8;
    float s[4] = {0, 0, 0, 0};
    for (int x = 0; x < k; x += 8) {
        float f[4], e[2];
        for (int u = 0; u < 4; u++) {
            int i = row + (u & 1) * 8, j = x + t + (u >> 1) * 4;
            f[u] = i < m && j < k ? a[(int64_t)i * k + j] : 0.0f;
        }
        for (int u = 0; u < 2; u++) {
            int i = x + t + u * 4, j = col + g;
            e[u] = i < k && j < n ? b[(int64_t)i * n + j] : 0.0f;
        }
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                     : "r"(__float_as_uint(f[0])), "r"(__float_as_uint(f[1])), "r"(__float_as_uint(f[2])), "r"(__float_as_uint(f[3])),
                       "r"(__float_as_uint(e[0])), "r"(__float_as_uint(e[1])));
    }
    for (int u = 0; u < 4; u++) {
        int i = row + (u >> 1) * 8, j = col + 2 * t + (u & 1);
        if (i < m && j < n)
            c[(int64_t)i * n + j] = s[u];
    }
}
