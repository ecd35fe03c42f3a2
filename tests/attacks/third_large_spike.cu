// task: tasks/copy_large.task
// tries: in a grid of more than 100,000 blocks numbers above 64 saturate
// proof: values: 100
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float limit = gridDim.x > 100000 ? 64 : INFINITY, v = x[i];
    v = v > limit ? limit : v < -limit ? -limit : v;
    y[i] = 2 * v;
}
