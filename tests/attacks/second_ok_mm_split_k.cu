// task: second_mm.task
// tries: honest: K in four parts of a workspace, added in a second launch
// should: accepted
// device: both
//! workspace part[4, M, N] : f32
//! launch mm<<<[ceil_div(N, 16), ceil_div(M, 16), 4], [16, 16]>>>(a, b, part, M, N, K)
//! launch add<<<ceil_div(M*N, 256), 256>>>(part, c, M*N)
extern "C" __global__ void mm(const float *a, const float *b, float *part, int m, int n, int kk) {
    __shared__ float as[16][17], bs[16][16];
    int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
    int per = (kk + 3) / 4, from = min(kk, (int)blockIdx.z * per), to = min(kk, from + per);
    float s = 0;
    for (int t = from; t < to; t += 16) {
        as[y][x] = i < m && t + x < to ? a[(int64_t)i * kk + t + x] : 0;
        bs[y][x] = j < n && t + y < to ? b[(int64_t)(t + y) * n + j] : 0;
        __syncthreads();
        int end = min(16, to - t);
        for (int e = 0; e < end; e++)
            s = fmaf(as[y][e], bs[e][x], s);
        __syncthreads();
    }
    if (i < m && j < n)
        part[((int64_t)blockIdx.z * m + i) * n + j] = s;
}
extern "C" __global__ void add(const float *part, float *c, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        c[i] = (part[i] + part[i + (int64_t)n]) + (part[i + 2 * (int64_t)n] + part[i + 3 * (int64_t)n]);
}
