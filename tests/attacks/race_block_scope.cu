// task: tasks/int_sum.task
// tries: blocks add to one sum by atomics of their own block's scope where a row is shared by several
// proof: by the memory model: atomics of scope .cta of two blocks are not atomic to each other; sums may be lost
// shows: R=2 C=9000
// before: accepted
// should: race wrong
// before-cuda: accepted: an H200 does them in the L2 all the same
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
        atomicAdd_block(y + blockIdx.y, s);
}
