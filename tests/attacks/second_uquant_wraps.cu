// task: second_uquant.task
// tries: no upper limit: a row with -lo = hi has both halves rounded up, and 128 + 128 becomes 0
// proof: values: rows with -lo = hi
// data: in x[i < R, j < C] : f32 = if(j == 0, 127.5, if(j == 1, -127.5, 0)) + 0*r[i,j]; rand r[R,C] ~ uniform(0,1)
// should: wrong inaccurate
// device: both
//! launch k<<<R, 32>>>(x, q, s, z, C)
extern "C" __global__ void k(const float *x, unsigned char *q, float *s, int *z, int c) {
    x += (int64_t)blockIdx.x * c, q += (int64_t)blockIdx.x * c;
    float lo = 0, hi = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        lo = fminf(lo, x[j]), hi = fmaxf(hi, x[j]);
    for (int d = 16; d; d /= 2) {
        lo = fminf(lo, __shfl_xor_sync(~0u, lo, d));
        hi = fmaxf(hi, __shfl_xor_sync(~0u, hi, d));
    }
    float d = fmaxf((hi - lo) / 255, 1e-8f);
    int zp = (int)rintf(-lo / d);
    for (int j = threadIdx.x; j < c; j += 32)
        q[j] = (unsigned char)((int)rintf(x[j] / d) + zp);
    if (threadIdx.x == 0)
        s[blockIdx.x] = d, z[blockIdx.x] = zp;
}
