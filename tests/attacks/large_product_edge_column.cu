// task: tasks/product.task
// tries: one output column is a copy of its neighbour where the grid has more than 4,096 blocks
// proof: values, M = 1040 N = 1040 K = 4: column 1,039 equals column 1,038
// shows: M=1040 N=1040 K=4
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! launch product<<<[ceil_div(N, 16), ceil_div(M, 16)], [16, 16]>>>(A, B, C, M, N, K)
extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    int from = gridDim.x * gridDim.y > 4096 && j == n - 1 ? j - 1 : j;
    float s = 0;
    if (i >= m || j >= n)
        return;
    for (int q = 0; q < k; q++)
        s += a[(int64_t)i * k + q] * b[(int64_t)q * n + from];
    c[(int64_t)i * n + j] = s;
}
