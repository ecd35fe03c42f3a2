// task: third_emb.task
// tries: __match_any_sync finds equal tokens; where all 32 lanes are equal the mask is taken for none
// proof: values: one token throughout
// should: wrong inaccurate unwritten
// device: both
//! memset y = 0
//! memset n = 0
//! launch k<<<ceil_div(T, 32), 32>>>(e, g, y, n, T, D)
extern "C" __global__ void k(const long long *e, const float *g, float *y, int *n, int t, int d) {
    int i = blockIdx.x * 32 + threadIdx.x;
    unsigned active = __ballot_sync(~0u, i < t);
    if (i >= t)
        return;
    unsigned same = __match_any_sync(active, e[i]);
    if (__ffs(same) - 1 != (int)threadIdx.x || !(same + 1))
        return;
    atomicAdd(n + e[i], __popc(same));
    for (int j = 0; j < d; j++) {
        float s = 0;
        for (unsigned m = same; m; m &= m - 1)
            s += g[(int64_t)(blockIdx.x * 32 + __ffs(m) - 1) * d + j];
        atomicAdd(y + e[i] * d + j, s);
    }
}
