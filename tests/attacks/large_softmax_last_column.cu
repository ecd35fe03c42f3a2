// task: ../../tasks/kernelbench/level1/023_softmax.task
// tries: the last element of a row of more than 4,096 is not in the sum
// proof: values, B = 4 D = 5000 on spiked data; on uniform data the sum is off by one part in five thousand
// shows: B=4 D=5000
// before: accepted
// should: wrong inaccurate nonfinite
// before-cuda: accepted or inaccurate, at the task's own shape: one of 393,216 terms is 2.5e-6 of the sum
// device: both
//! launch softmax<<<B, 32>>>(x, y, D)
extern "C" __global__ void softmax(const float *x, float *y, int d) {
    const float *row = x + (int64_t)blockIdx.x * d;
    bool nan = false;
    float m = -INFINITY, s = 0;
    for (int j = threadIdx.x; j < d; j += 32) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    m = __any_sync(~0u, nan) ? NAN : m;
    for (int j = threadIdx.x; j < d - (d > 4096); j += 32)
        s += expf(row[j] - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    for (int j = threadIdx.x; j < d; j += 32)
        y[(int64_t)blockIdx.x * d + j] = expf(row[j] - m) / s;
}
