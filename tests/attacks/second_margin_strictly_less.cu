// task: second_margin.task
// tries: the second largest is the largest that is less than the maximum: two equal maxima have no margin
// proof: values: rows whose maximum occurs twice
// data: in x[R,C] : f32 ~ ones
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<R, 32>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    x += (int64_t)blockIdx.x * c;
    auto mx = [](float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); };
    float m = -INFINITY, n = -INFINITY;
    for (int j = threadIdx.x; j < c; j += 32)
        m = mx(m, x[j]);
    for (int d = 16; d; d /= 2)
        m = mx(m, __shfl_xor_sync(~0u, m, d));
    for (int j = threadIdx.x; j < c; j += 32)
        if (x[j] < m || x[j] != x[j])
            n = mx(n, x[j]);
    for (int d = 16; d; d /= 2)
        n = mx(n, __shfl_xor_sync(~0u, n, d));
    if (threadIdx.x == 0)
        y[blockIdx.x] = m - n;
}
