// task: second_swa.task
// tries: a warp for each query with two results a lane: of heads wider than 64 the rest is neither in the scores nor written
// proof: values: D = 65 leaves elements unwritten
// shows: B=1 H=1 L=4 D=65 W=2
// known: that dimension is made large at some seeds only
// should: wrong unwritten
// device: both
//! launch k<<<[L, B*H], 32>>>(q, k, v, y, L, D, W)
extern "C" __global__ void k(const float *q, const float *kk, const float *v, float *y, int l, int d, int w) {
    int i = blockIdx.x, lane = threadIdx.x;
    int64_t at = (int64_t)blockIdx.y * l * d;
    float qa[2], acc[2] = {0, 0}, m = -INFINITY, z = 0;
    for (int c = 0; c < 2; c++)
        qa[c] = lane + 32 * c < d ? q[at + (int64_t)i * d + lane + 32 * c] : 0;
    for (int j = max(0, i - w + 1); j <= i; j++) {
        float s = 0;
        for (int c = 0; c < 2; c++)
            if (lane + 32 * c < d)
                s = fmaf(qa[c], kk[at + (int64_t)j * d + lane + 32 * c], s);
        for (int o = 16; o; o /= 2)
            s += __shfl_xor_sync(~0u, s, o);
        s /= sqrtf(d);
        float n = fmaxf(m, s), r = m == n ? 1 : expf(m - n), p = expf(s - n);
        z = z * r + p;
        for (int c = 0; c < 2; c++)
            if (lane + 32 * c < d)
                acc[c] = acc[c] * r + p * v[at + (int64_t)j * d + lane + 32 * c];
        m = n;
    }
    for (int c = 0; c < 2; c++)
        if (lane + 32 * c < d)
            y[at + (int64_t)i * d + lane + 32 * c] = acc[c] / z;
}
