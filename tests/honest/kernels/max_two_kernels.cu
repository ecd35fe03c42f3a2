// task: tasks/kernelbench/level1/049_max_reduction.task
// set: B=8 M=512 N=511
// what: parts of each column to a workspace, a second kernel joins them
//! let S = 8
//! workspace part[S, B, N] : f32
//! launch partial<<<[ceil_div(B*N, 128), S], 128>>>(x, part, B*N, M, N)
//! launch join<<<ceil_div(B*N, 128), 128>>>(part, y, B*N, S)
static __device__ float larger(float a, float b) { return a > b || a != a ? a : b; }

extern "C" __global__ void partial(const float *x, float *part, int columns, int m, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    float top = -INFINITY;
    for (int i = blockIdx.y; i < m; i += gridDim.y)
        top = larger(top, x[((long long)(c / n) * m + i) * n + c % n]);
    part[(long long)blockIdx.y * columns + c] = top;
}

extern "C" __global__ void join(const float *part, float *y, int columns, int splits) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    float top = part[c];
    for (int s = 1; s < splits; s++)
        top = larger(top, part[(long long)s * columns + c]);
    y[c] = top;
}
