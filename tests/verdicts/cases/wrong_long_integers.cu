// expect: wrong
// row: 3
// tries: the first operand's upper 16 bits are taken for its sign
// task: tasks/long_sum.task
//! launch k<<<ceil_div(N, 256), 256>>>(a, b, y, N)
extern "C" __global__ void k(const long long *a, const long long *b, long long *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = (a[i] << 16 >> 16) + b[i];
}
