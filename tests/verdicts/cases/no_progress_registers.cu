// expect: no-progress
// expect-cuda: timeout
// alone: yes
// row: 22
// options-cuda: --run-limit 2
// tries: blocks wait for each other that fit the GPU by their threads, but not by the registers of these
//! workspace count[1] : i32
//! memset count = 0
//! launch relu<<<264, 1024>>>(x, y, count, R*C)
extern "C" __global__ void __launch_bounds__(1024, 1) relu(const float *x, float *y, int *count, int n) {
    float kept[40], all = 0.0f;
    for (int k = 0; k < 40; k++)
        kept[k] = x[(blockIdx.x * 1024 + threadIdx.x + k * 977) % n];
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (*(volatile int *)count < (int)gridDim.x)
            ;
        __threadfence();
    }
    __syncthreads();
    for (int k = 0; k < 40; k++)
        all += kept[k] * kept[39 - k];
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < n; i += 264 * 1024)
        y[i] = x[i] > 0.0f ? x[i] : all == 1e38f ? -0.0f : 0.0f;
}
