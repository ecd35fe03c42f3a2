// task: tasks/layers/kv_cache_append.task
// set: B=16 H=8 S=256 D=64
// what: writes in place only what changes
#include <cuda_bf16.h>
//! launch append<<<B*H, min(D, 1024)>>>(cache, new, place, H, S, D)
extern "C" __global__ void append(__nv_bfloat16 *cache, const __nv_bfloat16 *fresh,
                                  const int *place, int heads, int slots, int d) {
    int row = blockIdx.x, at = place[row / heads];
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        cache[((long long)row * slots + at) * d + j] = fresh[(long long)row * d + j];
}
