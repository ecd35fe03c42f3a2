// task: tasks/layers/rope.task
// set: B=2 H=4 L=256 E=64
// what: each thread rotates one pair, f16
#include <cuda_fp16.h>
//! launch rope<<<ceil_div(B*H*L*E, 256), 256>>>(x, cosine, sine, y, B*H*L, L, E)
extern "C" __global__ void rope(const __half *x, const float *cosine, const float *sine, __half *y,
                                int rows, int length, int half_dim) {
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)rows * half_dim)
        return;
    int row = (int)(at / half_dim), e = (int)(at % half_dim), l = row % length;
    float c = cosine[l * half_dim + e], s = sine[l * half_dim + e];
    const __half *from = x + (long long)row * 2 * half_dim;
    __half *to = y + (long long)row * 2 * half_dim;
    float u = __half2float(from[e]), v = __half2float(from[e + half_dim]);
    to[e] = __float2half_rn(u * c - v * s);
    to[e + half_dim] = __float2half_rn(v * c + u * s);
}
