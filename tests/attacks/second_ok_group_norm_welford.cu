// task: second_group_norm.task
// tries: honest: Welford in every lane, joined by Chan's rule through shuffles and shared memory
// should: accepted
// device: both
//! launch k<<<N*G, 128>>>(x, g, b, y, G, K, H*W)
__device__ void chan(float &n, float &m, float &q, float n2, float m2, float q2) {
    if (n2 == 0)
        return;
    float t = n + n2, d = m2 - m;
    m += d * (n2 / t);
    q += q2 + d * d * (n * n2 / t);
    n = t;
}
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int ng, int kk, int hw) {
    __shared__ float sh[3][4];
    int size = kk * hw, a = blockIdx.x % ng;
    x += (int64_t)blockIdx.x * size, y += (int64_t)blockIdx.x * size;
    float n = 0, m = 0, q = 0;
    for (int j = threadIdx.x; j < size; j += 128) {
        float v = x[j], d = v - m;
        n++;
        m += d / n;
        q += d * (v - m);
    }
    for (int d = 16; d; d /= 2) {
        float n2 = __shfl_down_sync(~0u, n, d), m2 = __shfl_down_sync(~0u, m, d), q2 = __shfl_down_sync(~0u, q, d);
        chan(n, m, q, n2, m2, q2);
    }
    if (threadIdx.x % 32 == 0)
        sh[0][threadIdx.x / 32] = n, sh[1][threadIdx.x / 32] = m, sh[2][threadIdx.x / 32] = q;
    __syncthreads();
    n = sh[0][0], m = sh[1][0], q = sh[2][0];
    for (int i = 1; i < 4; i++)
        chan(n, m, q, sh[0][i], sh[1][i], sh[2][i]);
    float r = rsqrtf(q / size + 1e-5f);
    for (int j = threadIdx.x; j < size; j += 128)
        y[j] = (x[j] - m) * r * g[a * kk + j / hw] + b[a * kk + j / hw];
}
