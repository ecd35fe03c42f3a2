// task: third_emb.task
// tries: each token's sum multiplies what is not its own by 0
// proof: values: one NaN makes all tokens NaN
// should: nonfinite wrong
// device: both
//! launch k<<<K, 32>>>(e, g, y, n, T, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int d) {
    int count = 0;
    for (int i = threadIdx.x; i < t; i += 32)
        count += e[i] == blockIdx.x;
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x == 0)
        n[blockIdx.x] = count;
    for (int j = threadIdx.x; j < d; j += 32) {
        float s = 0;
        for (int i = 0; i < t; i++)
            s += (e[i] == blockIdx.x ? 1.0f : 0.0f) * g[(int64_t)i * d + j];
        y[(int64_t)blockIdx.x * d + j] = s;
    }
}
