// task: third_isum.task
// tries: the largest begins at -2^31
// proof: values: a row of -2^40
// should: wrong
// device: both
//! launch k<<<R, 32>>>(x, s, m, C)
extern "C" __global__ void k(const long long *x, long long *s, long long *m, int c) {
    long long a = 0, b = INT_MIN;
    for (int j = threadIdx.x; j < c; j += 32) {
        long long v = x[(int64_t)blockIdx.x * c + j];
        a += v, b = max(b, v);
    }
    for (int d = 16; d; d /= 2)
        a += __shfl_xor_sync(~0u, a, d), b = max(b, __shfl_xor_sync(~0u, b, d));
    if (threadIdx.x == 0)
        s[blockIdx.x] = a, m[blockIdx.x] = b;
}
