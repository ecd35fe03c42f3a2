// expect: forbidden
// row: 13
// tries: defines one of libdevice's tables and writes it
// why: may only be read
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ unsigned __cudart_i2opi_f[6] = {0x3c439041u, 0xdb629599u, 0xf534ddc0u,
                                           0xfc2757d1u, 0x4e441529u, 0xa2f9836eu};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    __cudart_i2opi_f[threadIdx.x % 6] = n;
}
