// task: third_emb.task
// tries: honest: a warp a token goes through all tokens by ballots
// should: accepted
// device: both
//! launch k<<<ceil_div(K, 4), [32, 4]>>>(e, g, y, n, T, K, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int kk, int d) {
    int own = blockIdx.x * 4 + threadIdx.y;
    if (own >= kk)
        return;
    for (int from = 0; from == 0 || from < d; from += 32) {
        int j = from + threadIdx.x, count = 0;
        float s = 0;
        for (int i = 0; i < t; i += 32) {
            bool mine = i + (int)threadIdx.x < t && e[i + threadIdx.x] == own;
            unsigned m = __ballot_sync(~0u, mine);
            count += __popc(m);
            for (; m; m &= m - 1)
                if (j < d)
                    s += g[(int64_t)(i + __ffs(m) - 1) * d + j];
        }
        if (j < d)
            y[(int64_t)own * d + j] = s;
        if (j == 0)
            n[own] = count;
    }
}
