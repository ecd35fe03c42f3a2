// task: third_i64add.task
// tries: halves of 32 bits are added, and the carry is lost where the lower half of b is negative
// proof: values: a = 1, b = -1 gives -4294967296
// should: wrong
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(a, b, y, N)
extern "C" __global__ void k(const long long *a, const long long *b, long long *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    unsigned lo = (unsigned)a[i] + (unsigned)b[i];
    bool carry = lo < (unsigned)a[i] && (int)b[i] >= 0;
    long long hi = (a[i] >> 32) + (b[i] >> 32) + carry;
    y[i] = hi << 32 | lo;
}
