// task: second_bn_train.task
// tries: a block for each channel and pair of images computes the statistics again, and each of them updates the running mean: harmless only where one block has all images
// proof: race: blocks of one channel read and write rm without order; for N > 2 it is also updated N/2 times
// shows: N=4 C=2 L=4
// should: race wrong inaccurate
// device: both
//! launch k<<<[C, ceil_div(N, 8)], 32>>>(x, rm, rv, y, N, C, L)
extern "C" __global__ void k(const float *x, float *rm, float *rv, float *y, int n, int c, int l) {
    int ch = blockIdx.x, all = n * l;
    float s = 0, q = 0;
    for (int e = threadIdx.x; e < all; e += 32)
        s += x[((int64_t)(e / l) * c + ch) * l + e % l];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    float mu = s / all;
    for (int e = threadIdx.x; e < all; e += 32) {
        float t = x[((int64_t)(e / l) * c + ch) * l + e % l] - mu;
        q += t * t;
    }
    for (int d = 16; d; d /= 2)
        q += __shfl_xor_sync(~0u, q, d);
    float v = q / all, r = rsqrtf(v + 1e-5f);
    int from = blockIdx.y * 8 * l, to = min(from + 8 * l, all);
    for (int e = from + threadIdx.x; e < to; e += 32) {
        int64_t i = ((int64_t)(e / l) * c + ch) * l + e % l;
        y[i] = (x[i] - mu) * r;
    }
    if (threadIdx.x == 0) {
        rm[ch] = 0.9f * rm[ch] + 0.1f * mu;
        rv[ch] = 0.9f * rv[ch] + 0.1f * v * (all / (all - 1.0f));
    }
}
