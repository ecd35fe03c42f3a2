// task: recurrence.task
// tries: the step before the one before
// proof: R=3 T=7, stated
// should: wrong inaccurate
// device: both
//! launch steps<<<ceil_div(R, 128), 128>>>(x, a, h0, y, R, T)
extern "C" __global__ void steps(const float *x, const float *a, const float *h0, float *y, int R, int T) {
    int r = blockIdx.x * 128 + threadIdx.x;
    if (r >= R)
        return;
    float h = h0[r], before = h0[r];
    for (int t = 0; t < T; t++) {
        float now = a[r * T + t] * (t < 2 ? h : before) + x[r * T + t];
        y[r * T + t] = now;
        before = h;
        h = now;
    }
}
