// task: second_group_norm.task
// tries: mean and variance of a group by float4; what is left of a group whose size is no multiple of four is in neither
// proof: values: K*H*W no multiple of 4
// shows: N=1 G=2 K=1 H=5 W=3
// should: wrong inaccurate crash out-of-bounds
// device: both
//! launch k<<<N*G, 32>>>(x, g, b, y, G, K, H*W)
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int ng, int kk, int hw) {
    int n = kk * hw, a = blockIdx.x % ng;
    x += (int64_t)blockIdx.x * n, y += (int64_t)blockIdx.x * n;
    float s = 0, q = 0;
    int used = n < 4 ? n : n / 4 * 4;
    for (int j = threadIdx.x; j < used; j += 32)
        s += x[j];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    float mu = s / n;
    for (int j = threadIdx.x; j < used; j += 32)
        q += (x[j] - mu) * (x[j] - mu);
    for (int d = 16; d; d /= 2)
        q += __shfl_xor_sync(~0u, q, d);
    float r = rsqrtf(q / n + 1e-5f);
    for (int j = threadIdx.x; j < n; j += 32)
        y[j] = (x[j] - mu) * r * g[a * kk + j / hw] + b[a * kk + j / hw];
}
