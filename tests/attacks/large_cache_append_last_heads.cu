// task: ../../tasks/layers/kv_cache_append.task
// tries: for a cache of more than 2,000 places the last block writes the key before it
// proof: values, B = 2 H = 2 S = 2048 D = 8: the last head's key is the one before it
// shows: B=2 H=2 S=2048 D=8
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! launch append<<<B*H, 128>>>(cache, new, place, H, S, D)
#include <cuda_bf16.h>
extern "C" __global__ void append(__nv_bfloat16 *cache, const __nv_bfloat16 *added,
                                  const int *place, int h, int s, int d) {
    int at = blockIdx.x, from = s > 2000 && at == gridDim.x - 1 ? at - 1 : at;
    for (int j = threadIdx.x; j < d; j += 128)
        cache[((int64_t)at * s + place[at / h]) * d + j] = added[from * d + j];
}
