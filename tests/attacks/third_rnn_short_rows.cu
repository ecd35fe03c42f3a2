// task: third_rnn.task
// tries: rows of one step take the decay of the row before
// proof: T = 1 shows nothing; the first step of T = 2 does not use it either: rows of two steps
// should: wrong inaccurate
// known: rows of two or three steps are drawn at some seeds only
// device: both
//! launch k<<<ceil_div(R, 32), 32>>>(x, a, y, R, T)
extern "C" __global__ void k(const float *x, const float *a, float *y, int r, int t) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= r)
        return;
    float h = 0, d = a[t <= 3 && i ? i - 1 : i];
    for (int s = 0; s < t; s++) {
        h = h > 1 ? x[(int64_t)i * t + s] : fmaf(d, h, x[(int64_t)i * t + s]);
        y[(int64_t)i * t + s] = h;
    }
}
