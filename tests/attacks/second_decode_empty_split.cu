// task: second_decode.task
// tries: eight blocks share a head's keys; one that has none returns at once, and its part is read all the same
// proof: uninitialised: L = 9, where ceil(9/8) = 2 keys a block leave three blocks without
// shows: H=2 L=9 D=8
// should: uninitialised wrong nonfinite
// device: both
//! workspace part[H, 8, D+2] : f32
//! launch split<<<[8, H], 32>>>(q, k, v, part, L, D)
//! launch join<<<H, 32>>>(part, y, D)
extern "C" __global__ void split(const float *q, const float *k, const float *v, float *part, int l, int d) {
    int h = blockIdx.y, per = (l + 7) / 8, from = blockIdx.x * per, to = min(l, from + per);
    if (from >= to)
        return;
    float *o = part + ((int64_t)h * 8 + blockIdx.x) * (d + 2);
    float m = -INFINITY, z = 0;
    for (int e = threadIdx.x; e < d; e += 32)
        o[e] = 0;
    for (int j = from; j < to; j++) {
        float s = 0;
        for (int e = threadIdx.x; e < d; e += 32)
            s = fmaf(q[(int64_t)h * d + e], k[((int64_t)h * l + j) * d + e], s);
        for (int x = 16; x; x /= 2)
            s += __shfl_xor_sync(~0u, s, x);
        s /= sqrtf(d);
        float n = fmaxf(m, s), r = m == n ? 1 : expf(m - n), p = expf(s - n);
        z = z * r + p, m = n;
        for (int e = threadIdx.x; e < d; e += 32)
            o[e] = o[e] * r + p * v[((int64_t)h * l + j) * d + e];
    }
    if (threadIdx.x == 0)
        o[d] = m, o[d + 1] = z;
}
extern "C" __global__ void join(const float *part, float *y, int d) {
    const float *o = part + (int64_t)blockIdx.x * 8 * (d + 2);
    float m = -INFINITY, z = 0;
    for (int i = 0; i < 8; i++)
        m = fmaxf(m, o[i * (d + 2) + d]);
    for (int i = 0; i < 8; i++)
        z += o[i * (d + 2) + d + 1] * expf(o[i * (d + 2) + d] - m);
    for (int e = threadIdx.x; e < d; e += 32) {
        float s = 0;
        for (int i = 0; i < 8; i++)
            s += o[i * (d + 2) + e] * expf(o[i * (d + 2) + d] - m);
        y[(int64_t)blockIdx.x * d + e] = s / z;
    }
}
