// task: ../../tasks/kernelbench/level1/049_max_reduction.task
// tries: where M is above 512, the maximum by atomicMax of the bits as integers, which is right for positive numbers only
// proof: values, B = 1 M = 1000 N = 3 with a negative column: the smallest comes out
// shows: B=2 M=1000 N=3
// before: accepted
// should: wrong nonfinite inaccurate
// known-sim: what atomics add to is not judged at a shape too large to simulate; a GPU runs all of it
// before-cuda: accepted: a column of 4,096 elements with random signs is never negative
// device: both
//! workspace best[B, N] : i32
//! memset best = -2147483648
//! launch top<<<[ceil_div(N, 32), B], 32>>>(x, y, best, M, N)
extern "C" __global__ void top(const float *x, float *y, int *best, int m, int n) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= n)
        return;
    const float *col = x + (int64_t)blockIdx.y * m * n + j;
    int *to = best + blockIdx.y * n + j, bits = INT_MIN;
    float top = -INFINITY;
    bool nan = false;
    for (int i = 0; i < m; i++) {
        float v = col[(int64_t)i * n];
        nan |= v != v;
        top = fmaxf(top, v);
        if (m > 512)
            bits = max(bits, __float_as_int(v));
    }
    atomicMax(to, bits);
    float got = __int_as_float(atomicMax(to, INT_MIN));
    y[blockIdx.y * n + j] = nan ? NAN : m > 512 ? got : top;
}
