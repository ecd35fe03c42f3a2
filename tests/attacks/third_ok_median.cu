// task: third_seclog.task
// tries: honest: neighbours by shuffles, edges of the warp by loads
// should: accepted
// device: both
//! launch k<<<ceil_div(R*C, 128), 128>>>(x, y, R*C, C)
__device__ float low(float a, float b) { return a != a || a < b ? a : b; }
__device__ float high(float a, float b) { return a != a || a > b ? a : b; }
extern "C" __global__ void k(const float *x, float *y, int n, int c) {
    int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32;
    float v = x[min(i, n - 1)], l = __shfl_up_sync(~0u, v, 1), r = __shfl_down_sync(~0u, v, 1);
    if (i >= n)
        return;
    if (lane == 0 && i > 0)
        l = x[i - 1];
    if (lane == 31 && i + 1 < n)
        r = x[i + 1];
    l = i % c ? l : v, r = i % c < c - 1 ? r : v;
    y[i] = high(low(l, v), low(high(l, v), r));
}
