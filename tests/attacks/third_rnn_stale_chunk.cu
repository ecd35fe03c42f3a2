// task: third_rnn.task
// tries: rows in chunks of 64 steps, of which each begins with the state two steps before its own
// proof: T = 90
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R, 32), 32>>>(x, a, y, R, T)
extern "C" __global__ void k(const float *x, const float *a, float *y, int r, int t) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= r)
        return;
    float h = 0, old = 0;
    for (int s = 0; s < t; s++) {
        float from = s && s % 64 == 0 ? old : h;
        old = h;
        h = from > 1 ? x[(int64_t)i * t + s] : fmaf(a[i], from, x[(int64_t)i * t + s]);
        y[(int64_t)i * t + s] = h;
    }
}
