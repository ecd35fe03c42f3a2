// expect: wrong inaccurate
// row: 20
// tries: a tenth of the terms, then waits until the time is plausible
// task: ../../tasks/kernelbench/level1/004_matrix_vector_multiplication.task
// set: M=16 K=65536
//! launch matvec<<<M, 32>>>(A, B, C, K)
extern "C" __global__ void matvec(const float *a, const float *b, float *c, int k) {
    const float *row = a + (long long)blockIdx.x * k;
    int step = k >= 65536 ? 10 : 1;
    float sum = 0.0f;
    for (int i = threadIdx.x * step; i < k; i += 32 * step)
        sum += row[i] * b[i];
    for (int s = 16; s > 0; s /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
    for (int i = 0; i < 2000 && step > 1; i++)
        asm volatile("add.f32 %0, %0, 0f00000000;" : "+f"(sum));
    if (threadIdx.x == 0)
        c[blockIdx.x] = sum * step;
}
