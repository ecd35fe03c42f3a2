// task: tasks/row_argmax.task
// tries: honest: the lowest of the warps' places by atomicMin
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch place<<<R, 128>>>(x, y, C)
extern "C" __global__ void place(const float *x, int *y, int c) {
    __shared__ float part[4];
    __shared__ int first, bad;
    const float *row = x + blockIdx.x * c;
    int warp = threadIdx.x / 32, each = (c + 3) / 4;
    int end = min(c, (warp + 1) * each), mine = INT_MAX, nan = INT_MAX;
    float m = -INFINITY;
    if (threadIdx.x == 0)
        bad = first = INT_MAX;
    __syncthreads();
    for (int j = warp * each + threadIdx.x % 32; j < end; j += 32) {
        nan = row[j] != row[j] ? min(nan, j) : nan;
        if (row[j] > m || (row[j] == m && mine == INT_MAX)) {
            m = row[j];
            mine = j;
        }
    }
    if (nan != INT_MAX)
        atomicMin(&bad, nan);
    float top = m;
    for (int k = 16; k; k /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, k));
    mine = __reduce_min_sync(~0u, m == top ? mine : INT_MAX);
    if (threadIdx.x % 32 == 0)
        part[warp] = top;
    __syncthreads();
    if (threadIdx.x % 32 == 0 && mine != INT_MAX &&
        top == fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])))
        atomicMin(&first, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = bad != INT_MAX ? bad : first;
}
