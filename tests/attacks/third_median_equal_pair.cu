// task: third_seclog.task
// tries: where the left neighbour is equal to the element, the right one is taken
// proof: values: 1 1 2 gives 1
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R*C, 128), 128>>>(x, y, R*C, C)
__device__ float low(float a, float b) { return a != a || a < b ? a : b; }
__device__ float high(float a, float b) { return a != a || a > b ? a : b; }
extern "C" __global__ void k(const float *x, float *y, int n, int c) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], l = i % c ? x[i - 1] : v, r = i % c < c - 1 ? x[i + 1] : v;
    y[i] = i % c && l == v ? r : high(low(l, v), low(high(l, v), r));
}
