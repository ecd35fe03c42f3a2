// Access patterns with known sector counts, and the faults.
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = fmaxf(x[i], 0.0f);
}
extern "C" __global__ void relu4(const float4 *x, float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = __ldcs(x + i);
        v.x = fmaxf(v.x, 0.0f), v.y = fmaxf(v.y, 0.0f), v.z = fmaxf(v.z, 0.0f), v.w = fmaxf(v.w, 0.0f);
        __stcs(y + i, v);
    }
}
extern "C" __global__ void gelu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        y[i] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
    }
}
extern "C" __global__ void gelu_fast(const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = x[i];
        y[i] = v / (1.0f + __expf(-1.5957691f * (v + 0.044715f * v * v * v)));
    }
}
extern "C" __global__ void strided(const float *x, float *y, int stride, int shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i * stride + shift];
}
extern "C" __global__ void spin(int *x) {
    while (*(volatile int *)x == 0)
        ;
}
extern "C" __global__ void trap(int *x, int n) {
    if (blockIdx.x * blockDim.x + threadIdx.x == n)
        __trap();
    x[blockIdx.x] = 1;
}
extern "C" __global__ void deadlock(int *x) {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        asm volatile("bar.sync 1;");
    x[threadIdx.x] = 1;
}
extern "C" __global__ void __launch_bounds__(64) bounded(int *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void count_up(int *x) { atomicAdd(x, 1); }
