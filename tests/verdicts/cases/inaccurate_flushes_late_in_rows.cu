// expect: inaccurate wrong
// row: 7
// tries: flushes subnormal numbers to zero from the 1,024th element of a row on
// task: ../attacks/tasks/row_sum.task
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32) {
        float v = row[j];
        if (j >= 1024)
            asm("add.ftz.f32 %0, %1, %2;" : "=f"(s) : "f"(s), "f"(v));
        else
            s += v;
    }
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
