// task: tasks/kernelbench/level1/023_softmax.task
// set: B=256 D=4096
// what: maximum and sum in one pass, rescaled as the maximum grows
//! launch softmax<<<B, 128>>>(x, y, D)
static __device__ void join(float &m, float &s, float m2, float s2) {
    float top = fmaxf(m, m2);
    float a = m == -INFINITY ? 0.0f : expf(m - top), b = m2 == -INFINITY ? 0.0f : expf(m2 - top);
    s = s * a + s2 * b;
    m = top;
}

extern "C" __global__ void softmax(const float *x, float *y, int d) {
    __shared__ float tops[4], sums[4];
    const float *row = x + (long long)blockIdx.x * d;
    float m = -INFINITY, s = 0.0f;
    for (int j = threadIdx.x; j < d; j += 128) {
        float v = row[j], top = fmaxf(m, v);
        // a product, not a choice: a NaN that s holds already stays
        s = s * (m == -INFINITY ? 0.0f : expf(m - top)) + (v == -INFINITY ? 0.0f : expf(v - top));
        m = top;
    }
    for (int step = 16; step > 0; step /= 2)
        join(m, s, __shfl_xor_sync(0xffffffffu, m, step), __shfl_xor_sync(0xffffffffu, s, step));
    if (threadIdx.x % 32 == 0) {
        tops[threadIdx.x / 32] = m;
        sums[threadIdx.x / 32] = s;
    }
    __syncthreads();
    m = tops[0];
    s = sums[0];
    for (int w = 1; w < 4; w++)
        join(m, s, tops[w], sums[w]);
    for (int j = threadIdx.x; j < d; j += 128)
        y[(long long)blockIdx.x * d + j] = expf(row[j] - m) / s;
}
