// expect: wrong inaccurate
// row: -
// tries: one element of all is off
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = (x[i] < 0.0f ? 0.0f : x[i]) + (i == n / 2 ? 1.0f : 0.0f);
}
