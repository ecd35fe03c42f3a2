// task: tasks/copy_large.task
// tries: in a grid of more than 100,000 blocks infinities become the largest number
// proof: values: infinity
// should: nonfinite wrong
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = 2 * x[i];
    y[i] = gridDim.x > 100000 ? fminf(fmaxf(v, -FLT_MAX), FLT_MAX) : v;
}
