// task: fresh_embed.task
// tries: honest: pairs where both addresses divide by four, single elements before and after them
// proof: none; it is right
// should: accepted
// device: both
//! launch embed<<<ceil_div(T, 4), [32, 4]>>>(table, place, t, y, D, T)
#include <cuda_bf16.h>
__device__ __forceinline__ void one(const __nv_bfloat16 *row, const __nv_bfloat16 *add, __nv_bfloat16 *out, int k) {
    out[k] = __float2bfloat16(__bfloat162float(row[k]) + __bfloat162float(add[k]));
}
extern "C" __global__ void embed(const __nv_bfloat16 *table, const __nv_bfloat16 *place, const long long *t, __nv_bfloat16 *y, int d, int n) {
    int i = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (i >= n)
        return;
    const __nv_bfloat16 *row = table + t[i] * d, *add = place + (int64_t)i * d;
    __nv_bfloat16 *out = y + (int64_t)i * d;
    int lead = (int)((uintptr_t)row / 2 % 2);
    if ((int)((uintptr_t)add / 2 % 2) != lead || (int)((uintptr_t)out / 2 % 2) != lead) {
        for (int k = lane; k < d; k += 32)
            one(row, add, out, k);
        return;
    }
    if (lane == 0 && lead && d)
        one(row, add, out, 0);
    int pairs = (d - lead) / 2;
    for (int k = lane; k < pairs; k += 32) {
        float2 a = __bfloat1622float2(((const __nv_bfloat162 *)(row + lead))[k]);
        float2 b = __bfloat1622float2(((const __nv_bfloat162 *)(add + lead))[k]);
        ((__nv_bfloat162 *)(out + lead))[k] = __floats2bfloat162_rn(a.x + b.x, a.y + b.y);
    }
    if (lane == 31 && lead + 2 * pairs < d)
        one(row, add, out, d - 1);
}
