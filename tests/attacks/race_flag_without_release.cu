// task: tasks/row_sum.task
// tries: two blocks a row hand over by a flag; where rows are long the fence before it is missing
// proof: by the memory model: nothing orders the partial sum before the flag
// shows: R=4 C=5000
// before: accepted
// should: race
// before-cuda: accepted
// device: both
//! workspace part[R] : f32
//! workspace flag[R] : i32
//! memset flag = 0
//! launch sum<<<[2, R], 32>>>(x, y, part, flag, C)
extern "C" __global__ void sum(const float *x, float *y, float *part, int *flag, int c) {
    const float *row = x + (int64_t)blockIdx.y * c;
    volatile int *seen = flag + blockIdx.y;
    float s = 0;
    for (int j = blockIdx.x * 32 + threadIdx.x; j < c; j += 64)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x)
        return;
    if (blockIdx.x == 0) {
        part[blockIdx.y] = s;
        if (c <= 4096)
            __threadfence();
        *seen = 1;
        return;
    }
    while (*seen == 0)
        ;
    __threadfence();
    y[blockIdx.y] = s + part[blockIdx.y];
}
