// task: third_emb.task
// tries: within a warp equal tokens are added by plain loads and stores, one of which is lost
// proof: two equal tokens in a warp
// should: wrong race inaccurate
// device: both
//! memset y = 0
//! memset n = 0
//! launch k<<<1, 32>>>(e, g, y, n, T, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int d) {
    for (int i = threadIdx.x; i < t; i += 32) {
        n[e[i]] += 1;
        for (int j = 0; j < d; j++)
            y[e[i] * d + j] += g[(int64_t)i * d + j];
        __syncwarp();
    }
}
