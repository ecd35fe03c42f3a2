// task: tasks/row_max.task
// tries: of two blocks of a cluster one may end while the other reads its shared memory, where rows are long
// proof: by PTX: shared memory of a block that has ended may not be read; the second cluster barrier is missing
// shows: R=4 C=5000
// before: accepted
// should: race wrong no-progress nonfinite
// before-cuda: accepted or crash
// device: both
//! launch top<<<2*R, 32, cluster=2>>>(x, y, C)
#include <cooperative_groups.h>
extern "C" __global__ void top(const float *x, float *y, int c) {
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    __shared__ float best;
    __shared__ int bad;
    int rank = cluster.block_rank();
    const float *row = x + (int64_t)(blockIdx.x / 2) * c;
    float m = -INFINITY;
    bool nan = false;
    for (int j = rank * 32 + threadIdx.x; j < c; j += 64) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __any_sync(~0u, nan);
    if (threadIdx.x == 0) {
        best = m;
        bad = nan;
    }
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0)
        y[blockIdx.x / 2] = bad || *cluster.map_shared_rank(&bad, 1)
                                ? NAN
                                : fmaxf(best, *cluster.map_shared_rank(&best, 1));
    if (c <= 4096)
        cluster.sync();
}
