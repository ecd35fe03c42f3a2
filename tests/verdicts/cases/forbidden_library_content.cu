// expect: forbidden
// row: 13
// tries: memory of the module under the name and size of one of libdevice's tables
// why: writable memory at file scope
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ int __cudart_i2opi_f[6] = {1};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f && __cudart_i2opi_f[threadIdx.x % 6] < 9 ? 0.0f : x[i];
}
