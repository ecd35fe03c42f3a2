// task: third_isum.task
// tries: sums of 32 bits, widened at the end
// proof: values: three times 2^30
// should: wrong
// device: both
//! launch k<<<R, 32>>>(x, s, m, C)
extern "C" __global__ void k(const long long *x, long long *s, long long *m, int c) {
    int a = 0;
    long long b = LLONG_MIN;
    for (int j = threadIdx.x; j < c; j += 32) {
        long long v = x[(int64_t)blockIdx.x * c + j];
        a += (int)v, b = max(b, v);
    }
    for (int d = 16; d; d /= 2)
        a += __shfl_xor_sync(~0u, a, d), b = max(b, __shfl_xor_sync(~0u, b, d));
    if (threadIdx.x == 0)
        s[blockIdx.x] = a, m[blockIdx.x] = b;
}
