// expect: wrong inaccurate
// row: 7, 20
// tries: every thousandth term of a long sum, times a thousand, at long sums only
// task: ../../tasks/kernelbench/level1/004_matrix_vector_multiplication.task
// set: M=16 K=65536
//! launch matvec<<<M, 32>>>(A, B, C, K)
extern "C" __global__ void matvec(const float *a, const float *b, float *c, int k) {
    const float *row = a + (long long)blockIdx.x * k;
    int step = k >= 65536 ? 1000 : 1;
    float sum = 0.0f;
    for (int i = threadIdx.x * step; i < k; i += 32 * step)
        sum += row[i] * b[i];
    for (int s = 16; s > 0; s /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
    if (threadIdx.x == 0)
        c[blockIdx.x] = sum * step;
}
