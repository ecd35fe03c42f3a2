// task: second_meanlen.task
// tries: honest: pairs of bf16 where D is even, tokens shared by eight warps and joined in shared memory
// should: accepted
// device: both
//! launch k<<<[B, ceil_div(D, 64)], [32, 8]>>>(x, n, y, L, D)
#include <cuda_bf16.h>
extern "C" __global__ void k(const __nv_bfloat16 *x, const int *n, __nv_bfloat16 *y, int l, int d) {
    __shared__ float2 part[8][32];
    int e = blockIdx.y * 64 + 2 * threadIdx.x, len = n[blockIdx.x];
    float2 s = make_float2(0, 0);
    x += (int64_t)blockIdx.x * l * d, y += (int64_t)blockIdx.x * d;
    for (int i = threadIdx.y; i < len; i += 8) {
        if (d % 2 == 0 && e < d) {
            float2 v = __bfloat1622float2(*(const __nv_bfloat162 *)(x + (int64_t)i * d + e));
            s.x += v.x, s.y += v.y;
        } else {
            if (e < d)
                s.x += __bfloat162float(x[(int64_t)i * d + e]);
            if (e + 1 < d)
                s.y += __bfloat162float(x[(int64_t)i * d + e + 1]);
        }
    }
    part[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y)
        return;
    for (int w = 1; w < 8; w++)
        s.x += part[w][threadIdx.x].x, s.y += part[w][threadIdx.x].y;
    if (e < d)
        y[e] = __float2bfloat16(s.x / len);
    if (e + 1 < d)
        y[e + 1] = __float2bfloat16(s.y / len);
}
