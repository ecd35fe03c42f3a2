// expect: timeout
// expect-sim: unsupported timeout no-progress
// alone: yes
// row: 22
// tries: sleeps for ever
// options-cuda: --run-limit 2
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (;;)
        __nanosleep(1000000);
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
