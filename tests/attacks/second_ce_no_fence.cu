// task: second_ce.task
// tries: rows' losses go to a workspace, the block that draws the last ticket adds them, without a fence on either side
// proof: race: the plain store of a loss is not ordered before the ticket
// shows: R=20 V=8
// should: race wrong uninitialised nonfinite
// device: both
//! workspace part[R] : f32
//! workspace ticket[1] : i32
//! memset ticket = 0
//! launch k<<<R, 32>>>(x, t, loss, part, ticket, R, V)
extern "C" __global__ void k(const float *x, const int *t, float *loss, float *part, int *ticket, int r, int v) {
    x += (int64_t)blockIdx.x * v;
    float m = -INFINITY, s = 0;
    for (int j = threadIdx.x; j < v; j += 32)
        m = fmaxf(m, x[j]);
    for (int d = 16; d; d /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    for (int j = threadIdx.x; j < v; j += 32)
        s += expf(x[j] - m);
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x)
        return;
    int y = t[blockIdx.x];
    part[blockIdx.x] = y > 0 ? m + logf(s) - x[y] : 0;
    if (atomicAdd(ticket, 1) != r - 1)
        return;
    float all = 0;
    int n = 1;
    for (int i = 0; i < r; i++)
        all += part[i], n += t[i] > 0;
    *loss = all / n;
}
