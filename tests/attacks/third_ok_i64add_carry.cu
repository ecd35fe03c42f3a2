// task: third_i64add.task
// tries: honest: halves of 32 bits with the carry of an unsigned comparison, two numbers a thread as one vector
// should: accepted
// device: both
//! launch k<<<ceil_div(N, 512), 256>>>(a, b, y, N)
__device__ long long add(long long a, long long b) {
    unsigned lo = (unsigned)a + (unsigned)b, hi = (unsigned)(a >> 32) + (unsigned)(b >> 32) + (lo < (unsigned)a);
    return (long long)((unsigned long long)hi << 32 | lo);
}
extern "C" __global__ void k(const long long *a, const long long *b, long long *y, int n) {
    int i = (blockIdx.x * 256 + threadIdx.x) * 2;
    if (i + 1 < n) {
        longlong2 u = *(const longlong2 *)(a + i), v = *(const longlong2 *)(b + i);
        *(longlong2 *)(y + i) = make_longlong2(add(u.x, v.x), add(u.y, v.y));
    } else if (i < n) {
        y[i] = add(a[i], b[i]);
    }
}
