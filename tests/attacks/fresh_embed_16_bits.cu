// task: fresh_embed.task
// tries: token numbers are kept in 16 bits, which the task's vocabulary fits and a larger one does not
// proof: values: token 70,000 of 80,000 gets row 4,464
// shows: V=80000 D=4 T=64
// known: a table of over 65,536 rows is drawn at some seeds only
// should: wrong inaccurate
// device: both
//! launch embed<<<ceil_div(T, 8), 256>>>(table, place, t, y, D, T)
#include <cuda_bf16.h>
extern "C" __global__ void embed(const __nv_bfloat16 *table, const __nv_bfloat16 *place, const long long *t, __nv_bfloat16 *y, int d, int n) {
    __shared__ unsigned short tokens[8];
    int first = blockIdx.x * 8;
    if (threadIdx.x < 8 && first + threadIdx.x < n)
        tokens[threadIdx.x] = (unsigned short)t[first + threadIdx.x];
    __syncthreads();
    int i = first + threadIdx.x / 32;
    if (i >= n)
        return;
    for (int k = threadIdx.x % 32; k < d; k += 32)
        y[(int64_t)i * d + k] = __float2bfloat16(__bfloat162float(table[(int64_t)tokens[i - first] * d + k]) +
                                                 __bfloat162float(place[(int64_t)i * d + k]));
}
