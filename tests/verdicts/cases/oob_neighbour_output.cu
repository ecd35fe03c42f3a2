// expect: out-of-bounds
// expect-cuda: out-of-bounds wrong inaccurate nonfinite
// row: 16
// tries: copies what lies where another run's output could be
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = ((const volatile float *)y)[i + 6 * 524288ll];
}
