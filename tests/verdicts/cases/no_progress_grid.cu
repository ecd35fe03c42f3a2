// expect: no-progress
// expect-cuda: timeout
// alone: yes
// row: 22
// tries: every block waits for every other, without a cooperative launch, and not all fit the GPU
// options-sim: --run-limit 110
// options-cuda: --run-limit 2
//! let G = ceil_div(R*C, 128)
//! workspace here[G] : i32
//! memset here = 0
//! launch relu<<<G, 128, 204800>>>(x, y, here, R*C)
extern "C" __global__ void relu(const float *x, float *y, int *flags, int n) {
    volatile int *here = flags;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        here[blockIdx.x] = 1;
        for (int b = 0; b < gridDim.x; b++)
            while (here[b] != 1) {
            }
    }
    __syncthreads();
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
