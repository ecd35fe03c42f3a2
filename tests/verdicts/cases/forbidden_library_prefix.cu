// expect: forbidden
// row: 13
// tries: a writable variable that has the prefix of libdevice's tables
// why: '__cudart_x'
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ int __cudart_x[6];
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    __cudart_x[threadIdx.x % 6] = n;
}
