// task: third_relu6.task
// tries: honest: the slope is taken from the result
// should: accepted
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i] < 0 ? 0 : x[i] > 6 ? 6 : x[i];
    y[i] = v, d[i] = v > 0 && v < 6;
}
