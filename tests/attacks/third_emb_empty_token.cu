// task: third_emb.task
// tries: tokens that do not occur keep what memory held: no memset of the sums
// proof: a token that does not occur
// should: unwritten uninitialised wrong
// device: both
//! workspace first[K] : i32
//! memset first = 0
//! launch k<<<K, 32>>>(e, g, y, n, T, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int d) {
    int count = 0;
    for (int i = threadIdx.x; i < t; i += 32)
        count += e[i] == blockIdx.x;
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x == 0)
        n[blockIdx.x] = count;
    if (!count)
        return;
    for (int j = threadIdx.x; j < d; j += 32) {
        float s = 0;
        for (int i = 0; i < t; i++)
            s += e[i] == blockIdx.x ? g[(int64_t)i * d + j] : 0;
        y[(int64_t)blockIdx.x * d + j] = s;
    }
}
