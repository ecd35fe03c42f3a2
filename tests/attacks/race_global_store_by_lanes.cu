// task: tasks/row_argmax.task
// tries: all lanes that have the largest element store their places to one output element, in an order that ends with the lowest on the simulator
// proof: by the memory model: which of several lanes' values stays is not defined
// before: accepted
// should: race wrong
// before-cuda: accepted or wrong, as the hardware chooses
// device: both
//! launch place<<<R, 32>>>(x, y, C)
extern "C" __global__ void place(const float *x, int *y, int c) {
    const float *row = x + blockIdx.x * c;
    float m = -INFINITY;
    int nan = INT_MAX, mine = INT_MAX;
    for (int j = threadIdx.x; j < c; j += 32) {
        m = fmaxf(m, row[j]);
        nan = row[j] != row[j] ? min(nan, j) : nan;
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __reduce_min_sync(~0u, nan);
    for (int t = 0; t < c && mine == INT_MAX; t += 32) {
        int j = t + 31 - threadIdx.x;
        if (j < c && row[j] == m)
            mine = j;
    }
    int group = __reduce_min_sync(~0u, mine / 32);
    if (nan != INT_MAX ? threadIdx.x == 0 : mine / 32 == group)
        y[blockIdx.x] = nan != INT_MAX ? nan : mine;
}
