// task: third_scanlong.task
// tries: the carry of a tile is that of the tile before and the one before that, not of all
// proof: the fourth tile of 512
// should: wrong inaccurate nonfinite
// device: both
//! workspace t[R, ceil_div(C, 512)] : f32
//! launch a<<<[ceil_div(C, 512), R], 32>>>(x, t, C)
//! launch b<<<[ceil_div(C, 512), R], 32>>>(x, t, y, z, C)
extern "C" __global__ void a(const float *x, float *t, int c) {
    const float *p = x + (int64_t)blockIdx.y * c;
    float s = 0;
    for (int j = blockIdx.x * 512 + threadIdx.x; j < min(c, (int)blockIdx.x * 512 + 512); j += 32)
        s += p[j];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0)
        t[blockIdx.y * gridDim.x + blockIdx.x] = s;
}
extern "C" __global__ void b(const float *x, const float *t, float *y, float *z, int c) {
    int64_t at = (int64_t)blockIdx.y * c;
    int first = max(0, (int)blockIdx.x - 3), last = min(c, (int)blockIdx.x * 512 + 512);
    float carry = 0, rest = 0;
    for (int i = first; i < (int)blockIdx.x; i++)
        carry += t[blockIdx.y * gridDim.x + i];
    for (int i = blockIdx.x + 1; i < (int)gridDim.x; i++)
        rest += t[blockIdx.y * gridDim.x + i];
    if (threadIdx.x == 0)
        for (int j = blockIdx.x * 512; j < last; j++)
            y[at + j] = carry += x[at + j];
    if (threadIdx.x == 1)
        for (int j = last - 1; j >= (int)blockIdx.x * 512; j--) {
            z[at + j] = rest;
            rest += x[at + j];
        }
}
