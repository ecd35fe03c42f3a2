// task: tasks/kernelbench/level1/038_l1_norm.task
// set: B=512 D=2047
// what: a cluster of four blocks a row, partial sums exchanged through distributed shared memory
#include <cooperative_groups.h>
//! launch normalise<<<4*B, 128, cluster=[4,1,1]>>>(x, y, D)
extern "C" __global__ void normalise(const float *x, float *y, int d) {
    namespace cg = cooperative_groups;
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ float warps[4], part;
    long long base = (long long)(blockIdx.x / 4) * d;
    int rank = (int)cluster.block_rank();
    float sum = 0.0f;
    for (int j = rank * 128 + threadIdx.x; j < d; j += 512)
        sum += fabsf(x[base + j]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        part = (warps[0] + warps[1]) + (warps[2] + warps[3]);
    cluster.sync();
    float total = 0.0f;
    for (int r = 0; r < 4; r++)
        total += *cluster.map_shared_rank(&part, r);
    cluster.sync();
    float mean = total / d;
    for (int j = rank * 128 + threadIdx.x; j < d; j += 512)
        y[base + j] = x[base + j] / mean;
}
