// task: second_softmax.task
// tries: rows of whole float4 go through an online softmax a thread, where a thread that has met nothing but -inf makes NaN of -inf - -inf; other rows have two passes
// proof: values: C a multiple of 4, a row that begins with eight or more -inf
// shows: R=40 C=64
// known: shapes that take the vector path meet few rows with infinities
// should: nonfinite wrong
// device: both
//! launch k<<<R, 32>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    x += (int64_t)blockIdx.x * c, y += (int64_t)blockIdx.x * c;
    float m = -INFINITY, s = 0;
    if (c % 4 == 0) {
        for (int j = threadIdx.x; j < c / 4; j += 32) {
            float4 v = ((const float4 *)x)[j];
            float n = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
            s = s * expf(m - n) + expf(v.x - n) + expf(v.y - n) + expf(v.z - n) + expf(v.w - n);
            m = n;
        }
        for (int d = 16; d; d /= 2) {
            float n = __shfl_xor_sync(~0u, m, d), t = __shfl_xor_sync(~0u, s, d), o = fmaxf(m, n);
            s = (m == -INFINITY && s == 0 ? 0 : s * expf(m - o)) + (n == -INFINITY && t == 0 ? 0 : t * expf(n - o));
            m = o;
        }
    } else {
        for (int j = threadIdx.x; j < c; j += 32)
            m = fmaxf(m, x[j]);
        for (int d = 16; d; d /= 2)
            m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
        for (int j = threadIdx.x; j < c; j += 32)
            s += expf(x[j] - m);
        for (int d = 16; d; d /= 2)
            s += __shfl_xor_sync(~0u, s, d);
    }
    for (int j = threadIdx.x; j < c; j += 32)
        y[j] = expf(x[j] - m) / s;
}
