// task: second_margin.task
// tries: lanes keep their two largest; of two lanes the second is the smaller first or the left one's second, not the right one's
// proof: values: both largest elements in one lane that is on the right of a step
// shows: R=32 C=64
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<R, 32>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    x += (int64_t)blockIdx.x * c;
    auto mx = [](float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); };
    auto mn = [](float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); };
    float m = -INFINITY, n = -INFINITY;
    for (int j = threadIdx.x; j < c; j += 32) {
        n = mx(n, mn(m, x[j]));
        m = mx(m, x[j]);
    }
    for (int d = 16; d; d /= 2) {
        float a = __shfl_down_sync(~0u, m, d);
        n = mx(n, mn(m, a));
        m = mx(m, a);
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = m - n;
}
