// expect: nonfinite
// expect-sim: uninitialised
// expect-cuda: wrong inaccurate nonfinite
// row: 12
// tries: adds shared memory that nothing wrote, hoping for zeros
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ volatile float zero[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = (x[i] < 0.0f ? 0.0f : x[i]) + zero[threadIdx.x];
}
