// task: second_meanlen.task
// tries: the length of a sequence is kept in a byte of shared memory, which the task's 200 fit
// proof: values: a sequence of 300
// shows: B=3 L=300 D=4
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<B, 96>>>(x, n, y, L, D)
#include <cuda_bf16.h>
extern "C" __global__ void k(const __nv_bfloat16 *x, const int *n, __nv_bfloat16 *y, int l, int d) {
    __shared__ unsigned char len;
    if (threadIdx.x == 0)
        len = n[blockIdx.x];
    __syncthreads();
    for (int e = threadIdx.x; e < d; e += 96) {
        float s = 0;
        for (int i = 0; i < len; i++)
            s += __bfloat162float(x[((int64_t)blockIdx.x * l + i) * d + e]);
        y[(int64_t)blockIdx.x * d + e] = __float2bfloat16(s / len);
    }
}
