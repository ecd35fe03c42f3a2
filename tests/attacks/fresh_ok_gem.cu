// task: fresh_gem.task
// tries: honest: exponents 1, 2 and 3 have paths of their own
// proof: none; it is right
// should: accepted
// device: both
//! launch pool<<<N*C, 64>>>(x, p, y, H*W)
extern "C" __global__ void pool(const float *x, const float *p, float *y, int n) {
    __shared__ float half;
    const float *plane = x + (int64_t)blockIdx.x * n;
    float e = *p, s = 0;
    for (int i = threadIdx.x; i < n; i += 64) {
        float v = plane[i] < 1e-6f ? 1e-6f : plane[i];
        s += e == 3.0f ? v * v * v : e == 2.0f ? v * v : e == 1.0f ? v : powf(v, e);
    }
    s = s + __shfl_down_sync(~0u, s, 16);
    s = s + __shfl_down_sync(~0u, s, 8);
    s = s + __shfl_down_sync(~0u, s, 4);
    s = s + __shfl_down_sync(~0u, s, 2);
    s = s + __shfl_down_sync(~0u, s, 1);
    if (threadIdx.x == 32)
        half = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        s = (s + half) / n;
        y[blockIdx.x] = e == 3.0f ? cbrtf(s) : e == 2.0f ? sqrtf(s) : e == 1.0f ? s : powf(s, 1 / e);
    }
}
