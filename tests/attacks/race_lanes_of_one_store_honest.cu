// task: tasks/row_argmax.task
// tries: honest: the lowest of the lanes' places is voted for
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch place<<<R, 32>>>(x, y, C)
extern "C" __global__ void place(const float *x, int *y, int c) {
    const float *row = x + blockIdx.x * c;
    float m = -INFINITY;
    int nan = INT_MAX, first = 0;
    for (int j = threadIdx.x; j < c; j += 32) {
        m = fmaxf(m, row[j]);
        nan = row[j] != row[j] ? min(nan, j) : nan;
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __reduce_min_sync(~0u, nan);
    unsigned found = 0;
    for (int t = 0; t < c && !found; t += 32) {
        int j = t + threadIdx.x;
        found = __ballot_sync(~0u, j < c && row[j] == m);
        first = t + __ffs(found) - 1;
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan != INT_MAX ? nan : first;
}
