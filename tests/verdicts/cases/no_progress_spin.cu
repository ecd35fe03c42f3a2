// expect: no-progress
// expect-cuda: timeout
// alone: yes
// row: 22
// tries: waits for a value that nobody writes
// options-sim: --run-limit 110
// options-cuda: --run-limit 2
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (*(volatile float *)y != 1234.5f) {
    }
    if (i < n)
        y[i] = x[i];
}
