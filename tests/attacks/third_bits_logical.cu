// task: third_bits.task
// tries: shifts without the sign
// proof: values: -1 shifted by 4 is -1
// should: wrong
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(x, s, m, y, N)
extern "C" __global__ void k(const int *x, const int *s, const int *m, int *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = ((int)((unsigned)x[i] >> s[i]) & m[i]) ^ x[i];
}
