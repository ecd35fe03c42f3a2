// task: ../../tasks/kernelbench/level1/049_max_reduction.task
// set: B=16 M=64 N=63
// tries: the maxima of negative columns include a place of shared memory that nothing wrote
// proof: by the memory model: the place is undefined; the stated data, on which reads are checked, have no negative column
// data: in x[B,M,N] : f32 ~ uniform(-1, 0)
// before: accepted
// should: uninitialised wrong nonfinite
// before-cuda: wrong or nonfinite
// device: both
//! launch top<<<[ceil_div(N, 32), B], 32>>>(x, y, M, N)
extern "C" __global__ void top(const float *x, float *y, int m, int n) {
    __shared__ float spare[32];
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= n)
        return;
    const float *col = x + (int64_t)blockIdx.y * m * n + j;
    float top = -INFINITY;
    bool nan = false;
    for (int i = 0; i < m; i++) {
        float v = col[(int64_t)i * n];
        nan |= v != v;
        top = fmaxf(top, v);
    }
    if (top < 0)
        top = fmaxf(top, ((volatile float *)spare)[threadIdx.x]);
    y[blockIdx.y * n + j] = nan ? NAN : top;
}
