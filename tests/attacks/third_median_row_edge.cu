// task: third_seclog.task
// tries: the last element of a row takes the first of the next row for its neighbour, but for the last row
// proof: values
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R*C, 128), 128>>>(x, y, R*C, C)
__device__ float low(float a, float b) { return a != a || a < b ? a : b; }
__device__ float high(float a, float b) { return a != a || a > b ? a : b; }
extern "C" __global__ void k(const float *x, float *y, int n, int c) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], l = i % c ? x[i - 1] : v, r = i + 1 < n ? x[i + 1] : v;
    y[i] = high(low(l, v), low(high(l, v), r));
}
