// expect: nonfinite
// expect-sim: uninitialised race
// expect-cuda: wrong inaccurate nonfinite unstable race
// row: 11
// tries: a sum through shared memory without the barrier, the writing warps late
// task: ../../tasks/kernelbench/level1/038_l1_norm.task
// set: B=64 D=1023
//! launch normalise<<<B, 256>>>(x, y, D)
extern "C" __global__ void normalise(const float *x, float *y, int d) {
    __shared__ volatile float warps[8];
    const float *row = x + (long long)blockIdx.x * d;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256)
        sum += fabsf(row[j]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x >= 128) // late on purpose: the race is lost every time
        for (int i = 0; i < 2000; i++)
            asm volatile("add.f32 %0, %0, 0f00000000;" : "+f"(sum));
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    sum = 0.0f;
    for (int w = 0; w < 8; w++)
        sum += warps[w];
    for (int j = threadIdx.x; j < d; j += 256)
        y[(long long)blockIdx.x * d + j] = row[j] / (sum / d);
}
