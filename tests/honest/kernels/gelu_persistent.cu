// task: tasks/smoke/gelu.task
// what: as many blocks as fit the GPU, four loads in flight a thread
//! let G = 264
//! launch gelu<<<G, 256>>>(x, y, R*C)
extern "C" __global__ void __launch_bounds__(256, 2) gelu(const float *x, float *y, int n) {
    const int UNROLL = 4, step = UNROLL * blockDim.x;
    for (int base = blockIdx.x * step + threadIdx.x; base < n; base += gridDim.x * step) {
        float v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            int i = base + u * blockDim.x;
            v[u] = i < n ? x[i] : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            int i = base + u * blockDim.x;
            if (i < n)
                y[i] = 0.5f * v[u] * (1.0f + erff(v[u] * 0.70710678f));
        }
    }
}
