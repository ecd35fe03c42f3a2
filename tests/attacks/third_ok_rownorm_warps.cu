// task: third_rownorm.task
// tries: honest: four rows a block, a warp each, named barriers never met by others
// should: accepted
// device: both
//! launch k<<<ceil_div(R, 4), [32, 4]>>>(x, y, R, C)
extern "C" __global__ void k(const float *x, float *y, int r, int c) {
    int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= r)
        return;
    const float *p = x + (int64_t)row * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += fabsf(p[j]);
    asm volatile("bar.sync %0, 32;" ::"r"(1 + threadIdx.y) : "memory");
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(0xffffffff, s, d);
    s = !(s <= 1e-12f) ? s : 1e-12f;
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)row * c + j] = p[j] / s;
}
