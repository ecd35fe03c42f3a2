// task: tasks/row_argmax.task
// tries: all lanes that have the largest element write their places to one address with one instruction, and the lowest is hoped for
// proof: by the memory model: which of several lanes' values stays is not defined; a row of equal values shows it
// before: accepted
// should: race wrong
// before-cuda: accepted or wrong, as the hardware chooses
// device: both
//! launch place<<<R, 32>>>(x, y, C)
extern "C" __global__ void place(const float *x, int *y, int c) {
    __shared__ int first;
    const float *row = x + blockIdx.x * c;
    float m = -INFINITY;
    int nan = INT_MAX;
    for (int j = threadIdx.x; j < c; j += 32) {
        m = fmaxf(m, row[j]);
        nan = row[j] != row[j] ? min(nan, j) : nan;
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __reduce_min_sync(~0u, nan);
    bool found = false;
    for (int t = 0; t < c && !found; t += 32) {
        int j = t + 31 - threadIdx.x; // the lane that is written last has the lowest place
        if (j < c && row[j] == m)
            first = j;
        __syncwarp();
        found = __any_sync(~0u, j < c && row[j] == m);
    }
    __syncwarp();
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan != INT_MAX ? nan : first;
}
