// task: third_rownorm.task
// tries: the upper half of the warp shuffles with the mask of the lower half
// proof: the behaviour is undefined where the calling lane is not in the mask (PTX, shfl.sync)
// should: wrong race no-progress uninitialised crash inaccurate nonfinite
// device: both
//! launch k<<<R, 32>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    const float *p = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += fabsf(p[j]);
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(0x0000ffff, s, d);
    s = s > 1e-12f || s != s ? s : 1e-12f;
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)blockIdx.x * c + j] = p[j] / s;
}
