// task: third_recip.task
// tries: exact powers of two by exponent arithmetic that is off by one from 2^64 on
// proof: values: 2^70 gives 2^-71
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    unsigned b = __float_as_uint(x[i]), e = b >> 23 & 255;
    bool power = (b & 0x7fffff) == 0 && e > 190 && e < 250;
    y[i] = power ? __uint_as_float((b & 0x80000000u) | (253 - e) << 23) : 1 / x[i];
}
