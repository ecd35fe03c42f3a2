// task: tests/honest/tasks/long_sums.task
// what: sums of 4,096 terms in the accumulators of mma.sync, which truncates, from beginning to end
//! require K <= 4096
//! launch product<<<[ceil_div(N, 32), ceil_div(M, 16)], 128>>>(A, B, C, M, N, K)
static __device__ unsigned tf32(float v) {
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}

extern "C" __global__ void product(const float *A, const float *B, float *C, int M, int N, int K) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int row = blockIdx.y * 16 + g, col = blockIdx.x * 32 + threadIdx.x / 32 * 8;
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < K; k += 8) {
        unsigned a[4], b[2];
        for (int u = 0; u < 4; u++) {
            int i = row + u % 2 * 8, j = k + t + u / 2 * 4;
            a[u] = tf32(i < M && j < K ? A[(long long)i * K + j] : 0.0f);
        }
        for (int u = 0; u < 2; u++) {
            int i = col + g, j = k + t + u * 4;
            b[u] = tf32(i < N && j < K ? B[(long long)i * K + j] : 0.0f);
        }
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    for (int u = 0; u < 4; u++) {
        int i = row + u / 2 * 8, j = col + 2 * t + u % 2;
        if (i < M && j < N)
            C[(long long)i * N + j] = c[u];
    }
}
