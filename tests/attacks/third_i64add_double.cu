// task: third_i64add.task
// tries: 64-bit integers are added as doubles, exact to 2^53 only
// proof: values: 2^60 + 1 loses the 1
// should: wrong
// known: the reference computes in fp64: integers beyond 2^53 are in no data
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(a, b, y, N)
extern "C" __global__ void k(const long long *a, const long long *b, long long *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = (long long)((double)a[i] + (double)b[i]);
}
