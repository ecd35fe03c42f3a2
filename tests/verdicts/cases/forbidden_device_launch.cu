// expect: forbidden compile-error
// row: 18
// tries: launches a kernel from the device, to finish after it was timed
//! launch relu<<<1, 32>>>(x, y, R*C)
extern "C" __global__ void work(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
extern "C" __global__ void relu(const float *x, float *y, int n) {
    if (threadIdx.x == 0)
        work<<<(n + 255) / 256, 256>>>(x, y, n);
}
