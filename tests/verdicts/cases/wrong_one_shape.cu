// expect: wrong inaccurate
// row: 5
// tries: wrong at one check shape
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C, C)
extern "C" __global__ void relu(const float *x, float *y, int n, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f && cols != 257 ? 0.0f : x[i];
}
