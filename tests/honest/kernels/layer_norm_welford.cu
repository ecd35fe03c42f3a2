// task: tasks/kernelbench/level1/040_layer_norm.task
// set: N=16 C=16 H=64 W=64
// what: mean and variance in one pass (Welford), joined across threads
//! launch normalise<<<N, 512>>>(x, weight, bias, y, C*H*W)
struct moments {
    float n, mean, m2;
};

static __device__ moments joined(moments a, moments b) {
    float n = a.n + b.n;
    if (n == 0.0f)
        return a;
    float delta = b.mean - a.mean, part = b.n / n;
    // in this order: delta * delta could overflow where the sum of squares does not
    return {n, a.mean + delta * part, a.m2 + b.m2 + delta * part * delta * a.n};
}

extern "C" __global__ void normalise(const float *x, const float *weight, const float *bias, float *y,
                                int d) {
    __shared__ moments warps[16];
    const float *row = x + (long long)blockIdx.x * d;
    moments m = {0.0f, 0.0f, 0.0f};
    for (int j = threadIdx.x; j < d; j += 512) {
        float delta = row[j] - m.mean;
        m.n += 1.0f;
        m.mean += delta / m.n;
        m.m2 += delta * (row[j] - m.mean);
    }
    for (int step = 16; step > 0; step /= 2) {
        moments other = {__shfl_xor_sync(0xffffffffu, m.n, step),
                         __shfl_xor_sync(0xffffffffu, m.mean, step),
                         __shfl_xor_sync(0xffffffffu, m.m2, step)};
        m = joined(m, other);
    }
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = m;
    __syncthreads();
    m = warps[0];
    for (int w = 1; w < 16; w++)
        m = joined(m, warps[w]);
    float scale = rsqrtf(m.m2 / d + 1e-5f);
    for (int j = threadIdx.x; j < d; j += 512)
        y[(long long)blockIdx.x * d + j] = (row[j] - m.mean) * scale * weight[j] + bias[j];
}
