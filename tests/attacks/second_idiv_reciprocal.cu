// task: second_idiv.task
// tries: quotients by a float reciprocal with one correction, exact up to 2^24
// proof: values: a = 2000000011, b = 3
// data: in a[N] : i32 ~ randint(1900000000, 2000000000)
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(a, b, q, r, N)
extern "C" __global__ void k(const int *a, const int *b, int *q, int *r, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    int t = (int)floorf(a[i] * (1.0f / b[i]));
    long long e = a[i] - (long long)t * b[i];
    if (e < 0)
        t--, e += b[i];
    else if (e >= b[i])
        t++, e -= b[i];
    q[i] = t, r[i] = (int)e;
}
