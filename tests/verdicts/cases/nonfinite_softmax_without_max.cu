// expect: nonfinite
// row: 3
// tries: a softmax that does not subtract the maximum: right on small values
// task: ../../tasks/kernelbench/level1/023_softmax.task
// set: B=16 D=2048
//! launch softmax<<<B, 32>>>(x, y, D)
extern "C" __global__ void softmax(const float *x, float *y, int d) {
    const float *row = x + (long long)blockIdx.x * d;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += 32)
        sum += expf(row[j]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    for (int j = threadIdx.x; j < d; j += 32)
        y[(long long)blockIdx.x * d + j] = expf(row[j]) / sum;
}
