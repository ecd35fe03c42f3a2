// task: recurrence.task
// tries: each result from the last eight steps alone
// proof: R=3 T=50, stated
// should: wrong inaccurate
// device: both
//! launch steps<<<ceil_div(R, 128), 128>>>(x, a, h0, y, R, T)
extern "C" __global__ void steps(const float *x, const float *a, const float *h0, float *y, int R, int T) {
    int r = blockIdx.x * 128 + threadIdx.x;
    if (r >= R)
        return;
    for (int t = 0; t < T; t++) {
        float h = t < 8 ? h0[r] : 0.0f;
        for (int s = t < 8 ? 0 : t - 7; s <= t; s++)
            h = a[r * T + s] * h + x[r * T + s];
        y[r * T + t] = h;
    }
}
