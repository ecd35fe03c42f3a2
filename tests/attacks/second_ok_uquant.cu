// task: second_uquant.task
// tries: honest: a row's range by shuffles and shared memory, four results in a word where rows are whole
// should: accepted
// device: both
//! launch k<<<R, 128>>>(x, q, s, z, C)
extern "C" __global__ void k(const float *x, unsigned char *q, float *s, int *z, int c) {
    __shared__ float wl[4], wh[4];
    x += (int64_t)blockIdx.x * c, q += (int64_t)blockIdx.x * c;
    float lo = 0, hi = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        lo = fminf(lo, x[j]), hi = fmaxf(hi, x[j]);
    for (int d = 16; d; d /= 2) {
        lo = fminf(lo, __shfl_xor_sync(~0u, lo, d));
        hi = fmaxf(hi, __shfl_xor_sync(~0u, hi, d));
    }
    if (threadIdx.x % 32 == 0)
        wl[threadIdx.x / 32] = lo, wh[threadIdx.x / 32] = hi;
    __syncthreads();
    lo = fminf(fminf(wl[0], wl[1]), fminf(wl[2], wl[3]));
    hi = fmaxf(fmaxf(wh[0], wh[1]), fmaxf(wh[2], wh[3]));
    float d = fmaxf((hi - lo) / 255, 1e-8f);
    int zp = max(0, min(255, __float2int_rn(-lo / d)));
    auto one = [&](float v) { return (unsigned char)max(0, min(255, __float2int_rn(v / d) + zp)); };
    if (c % 4 == 0)
        for (int j = threadIdx.x; j < c / 4; j += 128) {
            float4 v = ((const float4 *)x)[j];
            ((uchar4 *)q)[j] = make_uchar4(one(v.x), one(v.y), one(v.z), one(v.w));
        }
    else
        for (int j = threadIdx.x; j < c; j += 128)
            q[j] = one(x[j]);
    if (threadIdx.x == 0)
        s[blockIdx.x] = d, z[blockIdx.x] = zp;
}
