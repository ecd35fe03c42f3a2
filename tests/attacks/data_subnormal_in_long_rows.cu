// task: tasks/row_sum.task
// tries: flushes subnormal numbers to zero from the ninth round of a row on
// proof: values, R = 8 C = 4096 on subnormal data: most elements count as zero
// shows: R=8 C=4096
// before: accepted
// should: wrong inaccurate
// before-cuda: inaccurate, on subnormal data at the task's own shape
// device: both
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
