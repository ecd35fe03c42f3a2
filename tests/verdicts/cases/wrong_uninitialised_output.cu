// expect: nonfinite wrong inaccurate unwritten
// expect-sim: uninitialised
// row: 12
// tries: adds to an output without clearing it
// task: ../../tasks/kernelbench/level1/047_sum_reduction.task
// set: B=2 M=256 N=63
//! launch add<<<ceil_div(B*N, 64), 64>>>(x, y, B*N, M, N)
extern "C" __global__ void add(const float *x, float *y, int columns, int m, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; c < columns && i < m; i++)
        y[c] += x[((long long)(c / n) * m + i) * n + c % n];
}
