// task: tasks/int_sum.task
// tries: honest: atomics of the GPU's scope
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! let S = ceil_div(C, 4096)
//! memset y = 0
//! launch sum<<<[S, R], 128>>>(x, y, C)
extern "C" __global__ void sum(const signed char *x, int *y, int c) {
    int s = 0, end = min(c, (int)(blockIdx.x + 1) * 4096);
    for (int j = blockIdx.x * 4096 + threadIdx.x; j < end; j += 128)
        s += x[(int64_t)blockIdx.y * c + j];
    s = __reduce_add_sync(~0u, s);
    if (threadIdx.x % 32 == 0)
        atomicAdd(y + blockIdx.y, s);
}
