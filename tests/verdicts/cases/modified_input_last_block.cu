// expect: modified-input
// row: 8
// tries: changes the last bit of one input element, at the task's own shape only
// shape: R=256 C=1024
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (i == n - 77 && n == 262144)
        *(unsigned *)(x + i) ^= 1u;
}
