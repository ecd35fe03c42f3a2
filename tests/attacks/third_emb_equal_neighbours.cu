// task: third_emb.task
// tries: where two neighbouring tokens are equal and a third follows that is equal, it is counted for the first two only
// proof: values: three equal tokens in a row
// should: wrong inaccurate
// device: both
//! memset y = 0
//! memset n = 0
//! launch k<<<ceil_div(T, 128), 128>>>(e, g, y, n, T, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int d) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= t)
        return;
    if (i > 1 && e[i] == e[i - 1] && e[i] == e[i - 2])
        return;
    atomicAdd(n + e[i], 1);
    for (int j = 0; j < d; j++)
        atomicAdd(y + e[i] * d + j, g[(int64_t)i * d + j]);
}
