// task: tasks/product.task
// tries: leaves out the last sixteenth of K where K is above 1,024
// proof: values, M = 16 N = 16 K = 2048
// shows: M=16 N=16 K=2048
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! launch product<<<[ceil_div(N, 16), ceil_div(M, 16)], [16, 16]>>>(A, B, C, M, N, K)
extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float ta[16][17], tb[16][17];
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    int end = k > 1024 ? k - k / 16 : k;
    float s = 0;
    for (int t = 0; t < k; t += 16) {
        int ka = t + threadIdx.x, kb = t + threadIdx.y;
        ta[threadIdx.y][threadIdx.x] = i < m && ka < k ? a[(int64_t)i * k + ka] : 0;
        tb[threadIdx.y][threadIdx.x] = j < n && kb < k ? b[(int64_t)kb * n + j] : 0;
        __syncthreads();
        if (t < end)
            for (int q = 0; q < 16; q++)
                s += ta[threadIdx.y][q] * tb[q][threadIdx.x];
        __syncthreads();
    }
    if (i < m && j < n)
        c[(int64_t)i * n + j] = s;
}
