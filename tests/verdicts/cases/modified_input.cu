// expect: modified-input
// row: 8
// tries: clears its input
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
        x[i] = 0.0f;
    }
}
