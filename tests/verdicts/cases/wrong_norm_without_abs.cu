// expect: wrong inaccurate
// row: 3
// tries: an L1 norm without the absolute value: the stated data are positive
// task: ../../tasks/kernelbench/level1/038_l1_norm.task
// set: B=64 D=511
//! launch normalise<<<B, 32>>>(x, y, D)
extern "C" __global__ void normalise(const float *x, float *y, int d) {
    const float *row = x + (long long)blockIdx.x * d;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += 32)
        sum += row[j];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    for (int j = threadIdx.x; j < d; j += 32)
        y[(long long)blockIdx.x * d + j] = row[j] / (sum / d);
}
