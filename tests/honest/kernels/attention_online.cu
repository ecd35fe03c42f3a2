// task: tasks/kernelbench/level1/097_scaled_dot_product_attention.task
// set: B=1 H=4 L=64 D=64
// what: a warp a query, softmax while the keys go by
//! require D <= 1024
//! launch attend<<<ceil_div(B*H*L, 4), 128>>>(Q, K, V, y, L, D, B*H*L)
extern "C" __global__ void attend(const float *q, const float *k, const float *v, float *y,
                                  int length, int d, int rows) {
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    const float *query = q + (long long)row * d;
    const float *keys = k + (long long)(row / length) * length * d;
    const float *values = v + (long long)(row / length) * length * d;
    float top = -INFINITY, sum = 0.0f, out[32] = {};
    float scale = 1.0f / sqrtf((float)d);
    for (int j = 0; j < length; j++) {
        float dot = 0.0f;
        for (int e = lane; e < d; e += 32)
            dot += query[e] * keys[(long long)j * d + e];
        for (int step = 16; step > 0; step /= 2)
            dot += __shfl_xor_sync(0xffffffffu, dot, step);
        dot *= scale;
        float next = fmaxf(top, dot), old = top == -INFINITY ? 0.0f : expf(top - next);
        float weight = dot == -INFINITY ? 0.0f : expf(dot - next);
        sum = sum * old + weight;
        top = next;
#pragma unroll
        for (int u = 0; u < 32; u++)
            if (lane + 32 * u < d)
                out[u] = out[u] * old + weight * values[(long long)j * d + lane + 32 * u];
    }
#pragma unroll
    for (int u = 0; u < 32; u++)
        if (lane + 32 * u < d)
            y[(long long)row * d + lane + 32 * u] = out[u] / sum;
}
