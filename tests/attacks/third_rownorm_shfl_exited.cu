// task: third_rownorm.task
// tries: sums by shuffles after lanes beyond the row have left
// proof: the value of a lane that has left is undefined (PTX, shfl.sync)
// should: wrong uninitialised race no-progress inaccurate nonfinite
// device: both
//! launch k<<<R, 32>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    const float *p = x + (int64_t)blockIdx.x * c;
    if ((int)threadIdx.x >= c)
        return;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += fabsf(p[j]);
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(0xffffffff, s, d);
    s = s > 1e-12f || s != s ? s : 1e-12f;
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)blockIdx.x * c + j] = p[j] / s;
}
