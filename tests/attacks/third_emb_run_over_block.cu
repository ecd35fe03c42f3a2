// task: third_emb.task
// tries: runs of equal tokens are added by their first thread, which stops at the end of its block
// proof: values: a run over the edge of a block of 128, whose rest begins no run
// should: wrong inaccurate
// device: both
//! memset y = 0
//! memset n = 0
//! launch k<<<ceil_div(T, 128), 128>>>(e, g, y, n, T, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int d) {
    int i = blockIdx.x * 128 + threadIdx.x, end = min(t, ((int)blockIdx.x + 1) * 128), last = i;
    if (i >= t || (i > 0 && e[i] == e[i - 1]))
        return;
    while (last < end && e[last] == e[i])
        last++;
    atomicAdd(n + e[i], last - i);
    for (int j = 0; j < d; j++) {
        float s = 0;
        for (int k = i; k < last; k++)
            s += g[(int64_t)k * d + j];
        atomicAdd(y + e[i] * d + j, s);
    }
}
