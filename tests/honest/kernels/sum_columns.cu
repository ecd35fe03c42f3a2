// task: tasks/kernelbench/level1/047_sum_reduction.task
// set: B=8 M=512 N=511
// what: a thread a column, four sums in flight
//! launch total<<<ceil_div(B*N, 128), 128>>>(x, y, B*N, M, N)
extern "C" __global__ void total(const float *x, float *y, int columns, int m, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    const float *p = x + (long long)(c / n) * m * n + c % n;
    float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int i = 0;
    for (; i + 4 <= m; i += 4)
#pragma unroll
        for (int u = 0; u < 4; u++)
            s[u] += p[(long long)(i + u) * n];
    for (; i < m; i++)
        s[0] += p[(long long)i * n];
    y[c] = (s[0] + s[1]) + (s[2] + s[3]);
}
