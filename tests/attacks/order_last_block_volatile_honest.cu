// task: tasks/row_sum.task
// tries: honest: of two blocks a row, the one that ends last adds both parts
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! workspace part[R, 2] : f32
//! workspace ended[R] : i32
//! memset ended = 0
//! launch sum<<<[2, R], 32>>>(x, y, part, ended, C)
extern "C" __global__ void sum(const float *x, float *y, float *part, int *ended, int c) {
    const float *row = x + (int64_t)blockIdx.y * c;
    float s = 0;
    for (int j = blockIdx.x * 32 + threadIdx.x; j < c; j += 64)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x)
        return;
    part[2 * blockIdx.y + blockIdx.x] = s;
    __threadfence();
    if (atomicAdd(ended + blockIdx.y, 1) == 0)
        return;
    __threadfence();
    y[blockIdx.y] = __ldcg(part + 2 * blockIdx.y) + __ldcg(part + 2 * blockIdx.y + 1);
}
