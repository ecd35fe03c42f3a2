// task: third_rownorm.task
// tries: honest: every thread of a block sums the whole row by itself, from another place
// should: accepted
// device: both
//! launch k<<<[ceil_div(C, 64), R], 64>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    int j = blockIdx.x * 64 + threadIdx.x;
    if (j >= c)
        return;
    const float *p = x + (int64_t)blockIdx.y * c;
    float s = 0, t = 0;
    for (int k = j; k < c; k++)
        s += fabsf(p[k]);
    for (int k = 0; k < j; k++)
        t += fabsf(p[k]);
    s += t;
    y[(int64_t)blockIdx.y * c + j] = p[j] / (!(s <= 1e-12f) ? s : 1e-12f);
}
