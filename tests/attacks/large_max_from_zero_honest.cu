// task: tasks/row_max.task
// tries: honest: the same with every tile's maximum beginning at -inf
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch top<<<R, 128>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    __shared__ float part[4];
    float m = -INFINITY;
    bool nan = false;
    for (int t = 0; t < c; t += 1024) {
        float tile = -INFINITY;
        for (int j = t + threadIdx.x; j < t + 1024 && j < c; j += 128) {
            float v = x[(int64_t)blockIdx.x * c + j];
            nan |= v != v;
            tile = fmaxf(tile, v);
        }
        m = fmaxf(m, tile);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    nan = __syncthreads_or(nan);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
}
