// task: ../../tasks/layers/cosine_similarity.task
// tries: honest: two blocks of a cluster share a row and read each other's sums
// proof: none; it is right
// should: accepted
// device: both
//! launch cosine<<<2*B, 64, cluster=2>>>(a, b, y, D)
#include <cooperative_groups.h>
extern "C" __global__ void cosine(const float *a, const float *b, float *y, int d) {
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    __shared__ float part[2][3], mine[3];
    int64_t row = (int64_t)(blockIdx.x / 2) * d;
    int half = (d + 1) / 2, rank = (int)cluster.block_rank(), end = rank ? d : half;
    float s[3] = {0, 0, 0};
    for (int j = rank * half + (int)threadIdx.x; j < end; j += 64) {
        float u = a[row + j], v = b[row + j];
        s[0] = fmaf(u, u, s[0]);
        s[1] = fmaf(v, v, s[1]);
        s[2] = fmaf(u, v, s[2]);
    }
    for (int e = 0; e < 3; e++)
        for (int k = 16; k; k /= 2)
            s[e] += __shfl_xor_sync(~0u, s[e], k);
    for (int e = 0; e < 3 && threadIdx.x % 32 == 0; e++)
        part[threadIdx.x / 32][e] = s[e];
    __syncthreads();
    if (threadIdx.x < 3)
        mine[threadIdx.x] = part[0][threadIdx.x] + part[1][threadIdx.x];
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0) {
        float *other = cluster.map_shared_rank(mine, 1);
        float p = sqrtf(mine[0] + other[0]), q = sqrtf(mine[1] + other[1]);
        y[blockIdx.x / 2] = (mine[2] + other[2]) / ((p < 1e-8f ? 1e-8f : p) * (q < 1e-8f ? 1e-8f : q));
    }
    cluster.sync();
}
