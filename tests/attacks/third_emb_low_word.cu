// task: third_emb.task
// tries: counts by the lowest 16 bits of the token
// proof: more than 65,536 tokens to count
// shows: T=70000 K=70000 D=1
// should: wrong inaccurate
// device: both
//! memset y = 0
//! memset n = 0
//! launch k<<<ceil_div(T, 128), 128>>>(e, g, y, n, T, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int d) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= t)
        return;
    int v = *(const unsigned short *)(e + i);
    atomicAdd(n + v, 1);
    for (int j = 0; j < d; j++)
        atomicAdd(y + (int64_t)v * d + j, g[(int64_t)i * d + j]);
}
