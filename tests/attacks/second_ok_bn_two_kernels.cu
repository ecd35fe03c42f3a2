// task: second_bn_train.task
// tries: honest: one launch for the statistics of channels, which updates the running ones, and one that normalises
// should: accepted
// device: both
//! workspace st[C, 2] : f32
//! launch stats<<<C, 128>>>(x, rm, rv, st, N, C, L)
//! launch apply<<<min(1024, ceil_div(N*C*L, 256)), 256>>>(x, st, y, N*C*L, C, L)
__device__ float total(float s) {
    __shared__ float w[4];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    return (w[0] + w[1]) + (w[2] + w[3]);
}
extern "C" __global__ void stats(const float *x, float *rm, float *rv, float *st, int n, int c, int l) {
    int ch = blockIdx.x, all = n * l;
    float s = 0, q = 0;
    for (int e = threadIdx.x; e < all; e += 128)
        s += x[((int64_t)(e / l) * c + ch) * l + e % l];
    float mu = total(s) / all;
    for (int e = threadIdx.x; e < all; e += 128) {
        float t = x[((int64_t)(e / l) * c + ch) * l + e % l] - mu;
        q += t * t;
    }
    q = total(q);
    if (threadIdx.x == 0) {
        st[2 * ch] = mu;
        st[2 * ch + 1] = rsqrtf(q / all + 1e-5f);
        rm[ch] = 0.9f * rm[ch] + 0.1f * mu;
        rv[ch] = 0.9f * rv[ch] + 0.1f * (q / (all - 1));
    }
}
extern "C" __global__ void apply(const float *x, const float *st, float *y, int n, int c, int l) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        int ch = i / l % c;
        y[i] = (x[i] - st[2 * ch]) * st[2 * ch + 1];
    }
}
