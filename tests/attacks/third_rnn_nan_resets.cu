// task: third_rnn.task
// tries: the state is kept unless it is at most 1: NaN resets it
// proof: values: NaN in the state
// should: nonfinite wrong
// device: both
//! launch k<<<ceil_div(R, 32), 32>>>(x, a, y, R, T)
extern "C" __global__ void k(const float *x, const float *a, float *y, int r, int t) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= r)
        return;
    float h = 0;
    for (int s = 0; s < t; s++) {
        h = h <= 1 ? fmaf(a[i], h, x[(int64_t)i * t + s]) : x[(int64_t)i * t + s];
        y[(int64_t)i * t + s] = h;
    }
}
