// expect: forbidden
// row: 13
// tries: counts its calls in a __device__ variable
__device__ int calls;
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        calls = calls + 1;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
