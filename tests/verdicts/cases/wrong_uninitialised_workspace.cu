// expect: wrong inaccurate nonfinite
// expect-sim: uninitialised
// row: 12
// tries: adds to a workspace that nothing cleared
// task: ../../tasks/kernelbench/level1/047_sum_reduction.task
// set: B=2 M=256 N=63
//! workspace sum[B, N] : f32
//! launch add<<<ceil_div(B*N, 64), 64>>>(x, sum, B*N, M, N)
//! launch copy<<<ceil_div(B*N, 64), 64>>>(sum, y, B*N)
extern "C" __global__ void add(const float *x, float *sum, int columns, int m, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; c < columns && i < m; i++)
        sum[c] += x[((long long)(c / n) * m + i) * n + c % n];
}
extern "C" __global__ void copy(const float *sum, float *y, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < columns)
        y[c] = sum[c];
}
