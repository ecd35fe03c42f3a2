// expect: wrong inaccurate drift
// row: 15
// tries: right by a bit of the SM's clock
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f && clock64() % 16 < 8 ? 0.0f : x[i];
}
