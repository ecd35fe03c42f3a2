// task: second_rope.task
// tries: honest: a thread for each pair, in a grid-stride loop
// should: accepted
// device: both
//! launch k<<<min(64, ceil_div(T*H*D, 256)), 256>>>(q, c, s, T*H*D, H, D)
extern "C" __global__ void k(float *q, const float *c, const float *s, int n, int h, int d) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        int row = i / d, f = i % d, t = row / h;
        float *p = q + (int64_t)row * 2 * d + f;
        float a = p[0], b = p[d], cs = __ldg(c + (int64_t)t * d + f), sn = __ldg(s + (int64_t)t * d + f);
        p[0] = a * cs - b * sn;
        p[d] = b * cs + a * sn;
    }
}
