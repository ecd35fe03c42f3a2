// task: third_bits.task
// tries: a shift by 31 is made as a shift by 30 and one more bit of rounding
// proof: values: x = -2147483648, s = 31 gives -2
// should: wrong
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(x, s, m, y, N)
extern "C" __global__ void k(const int *x, const int *s, const int *m, int *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = ((x[i] >> min(s[i], 30)) & m[i]) ^ x[i];
}
