// task: third_relu6.task
// tries: honest: limits from a table of constants by a computed place, local arrays indexed by data
// should: accepted
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
__constant__ float limit[4] = {0, 6, 0, 0};
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], pick[3] = {v, limit[threadIdx.x % 32 * 0], limit[1]};
    int which = v <= pick[1] ? 1 : v >= pick[2] ? 2 : 0;
    y[i] = pick[which], d[i] = which == 0 && v == v;
}
