// expect: no-progress
// options: --run-limit 110
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (*(volatile float *)y != 1234.5f) {
    }
    if (i < n)
        y[i] = x[i];
}
