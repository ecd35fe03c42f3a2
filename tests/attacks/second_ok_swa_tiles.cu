// task: second_swa.task
// tries: honest: 16 queries a block, keys and values by tiles of 16 in dynamic shared memory, online softmax
// should: accepted
// device: both
//! require D <= 512
//! launch k<<<[ceil_div(L, 16), B*H], [16, 16], 16*D*16 + 16*17*4>>>(q, k, v, y, L, D, W)
extern "C" __global__ void k(const float *q, const float *kk, const float *v, float *y, int l, int d, int w) {
    extern __shared__ float sh[];
    float *qs = sh, *ks = qs + 16 * d, *vs = ks + 16 * d, *acc = vs + 16 * d, *p = acc + 16 * d;
    int a = threadIdx.x, b = threadIdx.y, t = b * 16 + a, i0 = blockIdx.x * 16, i = i0 + b;
    int64_t at = (int64_t)blockIdx.y * l * d;
    for (int e = t; e < 16 * d; e += 256) {
        qs[e] = i0 + e / d < l ? q[at + (int64_t)i0 * d + e] : 0;
        acc[e] = 0;
    }
    float m = -INFINITY, z = 0;
    int first = max(0, i0 - w + 1) / 16 * 16, last = min(l - 1, i0 + 15);
    for (int j0 = first; j0 <= last; j0 += 16) {
        __syncthreads();
        for (int e = t; e < 16 * d; e += 256) {
            bool in = j0 + e / d < l;
            ks[e] = in ? kk[at + (int64_t)j0 * d + e] : 0;
            vs[e] = in ? v[at + (int64_t)j0 * d + e] : 0;
        }
        __syncthreads();
        int j = j0 + a;
        bool in = j <= i && i - j < w && i < l;
        float s = 0;
        for (int e = 0; e < d; e++)
            s = fmaf(qs[b * d + e], ks[a * d + e], s);
        s = in ? s * rsqrtf(d) : -INFINITY;
        float n = s;
        for (int o = 8; o; o /= 2)
            n = fmaxf(n, __shfl_xor_sync(~0u, n, o, 16));
        n = fmaxf(n, m);
        float base = n == -INFINITY ? 0 : n, r = expf(m - base), e1 = in ? expf(s - base) : 0, sum = e1;
        for (int o = 8; o; o /= 2)
            sum += __shfl_xor_sync(~0u, sum, o, 16);
        z = z * r + sum, m = n;
        p[b * 17 + a] = e1;
        __syncwarp();
        for (int e = a; e < d; e += 16) {
            float o = acc[b * d + e] * r;
            for (int c = 0; c < 16; c++)
                if (j0 + c <= i && i - j0 - c < w)
                    o = fmaf(p[b * 17 + c], vs[c * d + e], o);
            acc[b * d + e] = o;
        }
        __syncwarp();
    }
    if (i < l)
        for (int e = a; e < d; e += 16)
            y[at + (int64_t)i * d + e] = acc[b * d + e] / z;
}
