// expect: accepted
// row: 19
// tries: fetches its input into the L2 again at the end, for the next run
// gain: ok_naive.cu
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
//! launch fetch<<<ceil_div(R*C, 8192), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
extern "C" __global__ void fetch(const float *x, float *y, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 32;
    if (i < n)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(x + i));
}
