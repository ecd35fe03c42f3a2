// expect: no-progress
// expect-cuda: timeout
// alone: yes
// row: 22
// tries: a barrier that half of the threads never reach
// options-cuda: --run-limit 2
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 128)
        asm volatile("barrier.sync 1, 256;" ::: "memory");
    else
        asm volatile("barrier.sync 2, 256;" ::: "memory");
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
