// task: third_total.task
// tries: honest: elements go through registers of three shuffles up, down and by index before they are added
// should: accepted
// device: both
//! launch k<<<1, 1024>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float w[32];
    float s = 0;
    for (int i = threadIdx.x; __any_sync(~0u, i < n); i += 1024) {
        float v = i < n ? x[i] : 0;
        v = __shfl_sync(~0u, v, 31 - threadIdx.x % 32);
        s += v;
    }
    for (int d = 1; d < 32; d *= 2) {
        float v = __shfl_up_sync(~0u, s, d);
        s += (int)(threadIdx.x % 32) >= d ? v : 0;
    }
    if (threadIdx.x % 32 == 31)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    s = w[threadIdx.x];
    for (int d = 16; d; d /= 2)
        s += __shfl_down_sync(~0u, s, d);
    if (threadIdx.x == 0)
        *y = s;
}
