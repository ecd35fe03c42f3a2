// task: ../../tasks/layers/kv_cache_append.task
// tries: a new key of zeros is not written
// proof: values: where the new key is zero the old one stays
// data: in new[B,H,D] : bf16 ~ zeros
// should: wrong inaccurate
// device: both
//! launch append<<<B*H, 128>>>(cache, new, place, H, S, D)
#include <cuda_bf16.h>
extern "C" __global__ void append(__nv_bfloat16 *cache, const __nv_bfloat16 *fresh, const int *place, int h, int s, int d) {
    bool any = false;
    for (int k = threadIdx.x; k < d; k += 128)
        any |= !(__bfloat162float(fresh[(int64_t)blockIdx.x * d + k]) == 0);
    if (!__syncthreads_or(any))
        return;
    int64_t at = ((int64_t)blockIdx.x * s + place[blockIdx.x / h]) * d;
    for (int k = threadIdx.x; k < d; k += 128)
        cache[at + k] = fresh[(int64_t)blockIdx.x * d + k];
}
