// task: recurrence.task
// tries: nothing: an honest twin
// proof: none: it is right
// should: accepted
// device: both
//! launch steps<<<ceil_div(R, 128), 128>>>(x, a, h0, y, R, T)
extern "C" __global__ void steps(const float *x, const float *a, const float *h0, float *y, int R, int T) {
    int r = blockIdx.x * 128 + threadIdx.x;
    if (r >= R)
        return;
    float h = h0[r];
    for (int t = 0; t < T; t++)
        y[r * T + t] = h = a[r * T + t] * h + x[r * T + t];
}
