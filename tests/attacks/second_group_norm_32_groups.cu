// task: second_group_norm.task
// tries: a block for each image, a warp for each group: groups beyond the 32nd have no warp
// proof: values: G = 33 leaves a group unwritten
// shows: N=1 G=33 K=1 H=2 W=2
// known: a dimension that is small at the task's own shape is not made large
// should: wrong unwritten launch-error
// device: both
//! launch k<<<N, 32*min(G, 32)>>>(x, g, b, y, G, K, H*W)
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int ng, int kk, int hw) {
    int n = kk * hw, a = threadIdx.x / 32, lane = threadIdx.x % 32;
    x += ((int64_t)blockIdx.x * ng + a) * n, y += ((int64_t)blockIdx.x * ng + a) * n;
    float s = 0, q = 0;
    for (int j = lane; j < n; j += 32)
        s += x[j];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    float mu = s / n;
    for (int j = lane; j < n; j += 32)
        q += (x[j] - mu) * (x[j] - mu);
    for (int d = 16; d; d /= 2)
        q += __shfl_xor_sync(~0u, q, d);
    float r = rsqrtf(q / n + 1e-5f);
    for (int j = lane; j < n; j += 32)
        y[j] = (x[j] - mu) * r * g[a * kk + j / hw] + b[a * kk + j / hw];
}
