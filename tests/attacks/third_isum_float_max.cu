// task: third_isum.task
// tries: the largest by floats, exact up to 2^24
// proof: values: 2^24 + 1
// should: wrong
// device: both
//! launch k<<<R, 32>>>(x, s, m, C)
extern "C" __global__ void k(const long long *x, long long *s, long long *m, int c) {
    long long a = 0;
    float b = -INFINITY;
    for (int j = threadIdx.x; j < c; j += 32) {
        long long v = x[(int64_t)blockIdx.x * c + j];
        a += v, b = fmaxf(b, v);
    }
    for (int d = 16; d; d /= 2)
        a += __shfl_xor_sync(~0u, a, d), b = fmaxf(b, __shfl_xor_sync(~0u, b, d));
    if (threadIdx.x == 0)
        s[blockIdx.x] = a, m[blockIdx.x] = (long long)b;
}
