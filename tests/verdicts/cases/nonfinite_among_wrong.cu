// expect: nonfinite
// row: -
// tries: wrong everywhere and NaN now and then; the example shown is one of the latter
// why-sim: is nan, expected
//! require R*C > 4
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = i % 5 == 3 ? NAN : x[i] + 100.0f;
}
