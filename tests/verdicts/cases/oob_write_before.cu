// expect: out-of-bounds
// row: 9
// tries: writes one element before the start of its output
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (i == 0)
        y[-1] = 0.0f;
}
