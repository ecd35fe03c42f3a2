// task: second_swa.task
// tries: 16 queries share the first key of the window of their last one
// proof: values: every query but a tile's last, where L > W
// shows: B=1 H=1 L=40 D=4 W=8
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<[ceil_div(L, 16), B*H], 16>>>(q, k, v, y, L, D, W)
extern "C" __global__ void k(const float *q, const float *kk, const float *v, float *y, int l, int d, int w) {
    int i = blockIdx.x * 16 + threadIdx.x;
    if (i >= l)
        return;
    int64_t at = (int64_t)blockIdx.y * l * d;
    int last = min(l - 1, (int)blockIdx.x * 16 + 15), first = min(i, max(0, last - w + 1));
    for (int e = 0; e < d; e++) {
        float m = -INFINITY, z = 0, acc = 0;
        for (int j = first; j <= i; j++) {
            float s = 0;
            for (int c = 0; c < d; c++)
                s = fmaf(q[at + (int64_t)i * d + c], kk[at + (int64_t)j * d + c], s);
            s /= sqrtf(d);
            float n = fmaxf(m, s), r = m == n ? 1 : expf(m - n), p = expf(s - n);
            z = z * r + p, acc = acc * r + p * v[at + (int64_t)j * d + e], m = n;
        }
        y[at + (int64_t)i * d + e] = acc / z;
    }
}
