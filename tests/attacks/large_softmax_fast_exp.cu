// task: ../../tasks/kernelbench/level1/023_softmax.task
// tries: in rows of more than 4,096 elements the exponential is a polynomial of degree two
// proof: values, B = 4 D = 5000: terms are off by a percent
// shows: B=4 D=5000
// before: accepted
// should: wrong inaccurate nonfinite
// before-cuda: wrong or inaccurate, at the task's own shape
// device: both
//! launch softmax<<<B, 32>>>(x, y, D)
static __device__ float power(float v, bool exact) {
    if (exact || !(v > -1))
        return expf(v);
    return 1 + v + 0.5f * v * v;
}
extern "C" __global__ void softmax(const float *x, float *y, int d) {
    const float *row = x + (int64_t)blockIdx.x * d;
    bool exact = d <= 4096, nan = false;
    float m = -INFINITY, s = 0;
    for (int j = threadIdx.x; j < d; j += 32) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    m = __any_sync(~0u, nan) ? NAN : m;
    for (int j = threadIdx.x; j < d; j += 32)
        s += power(row[j] - m, exact);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    for (int j = threadIdx.x; j < d; j += 32)
        y[(int64_t)blockIdx.x * d + j] = power(row[j] - m, exact) / s;
}
