// expect: out-of-memory launch-error accepted
// expect-sim: accepted
// task-sim: tasks/relu_small.task
// row: 23
// tries: 500 KiB of local memory for each thread, for as many threads as the GPU holds: it may fit, but nothing else may suffer
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    volatile char frame[500 * 1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    frame[(unsigned)n * 977u % (500 * 1024)] = 1;
    if (i < n)
        y[i] = (x[i] < 0.0f ? 0.0f : x[i]) + (frame[(unsigned)n * 977u % (500 * 1024)] - 1);
}
