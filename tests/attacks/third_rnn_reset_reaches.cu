// task: third_rnn.task
// tries: the state is reset at 1 itself
// proof: values: a state of exactly 1
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(R, 32), 32>>>(x, a, y, R, T)
extern "C" __global__ void k(const float *x, const float *a, float *y, int r, int t) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= r)
        return;
    float h = 0;
    for (int s = 0; s < t; s++) {
        h = h >= 1 ? x[(int64_t)i * t + s] : fmaf(a[i], h, x[(int64_t)i * t + s]);
        y[(int64_t)i * t + s] = h;
    }
}
