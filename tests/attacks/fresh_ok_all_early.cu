// task: fresh_all.task
// tries: honest: a row is left as soon as an unset element is seen
// proof: none; it is right
// should: accepted
// device: both
//! launch every<<<ceil_div(R, 8), [32, 8]>>>(m, y, R, C)
extern "C" __global__ void every(const bool *m, bool *y, int r, int c) {
    int row = blockIdx.x * 8 + threadIdx.y;
    if (row >= r)
        return;
    const bool *in = m + (int64_t)row * c;
    bool all = true;
    for (int j = 0; j < c && all; j += 32)
        all = __all_sync(~0u, j + (int)threadIdx.x >= c || in[j + threadIdx.x]);
    if (threadIdx.x == 0)
        y[row] = all;
}
