// task: third_relu6.task
// tries: ends with a comment that goes on in the next line, to hide the assertions that follow the source
// proof: the plan's argument d is of bool, the parameter of int
// should: compile-error forbidden bad-plan out-of-bounds unwritten wrong
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
extern "C" __global__ void k(const float *x, float *y, int *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    y[i] = v < 0 ? 0 : v > 6 ? 6 : v, d[i] = v > 0 && v < 6;
}
// \
