// task: third_philox.task
// tries: honest: two neighbours a thread, the tail by a mask
// should: accepted
// device: both
//! launch k<<<ceil_div(R*C, 512), 256>>>(seed, x, y, R*C)
__device__ bool dropped(unsigned k0, unsigned k1, unsigned at) {
    unsigned a = at, b = 0, c = 0, d = 0;
#pragma unroll
    for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        unsigned long long u = 0xD2511F53ull * a, v = 0xCD9E8D57ull * c;
        a = (unsigned)(v >> 32) ^ b ^ k0, b = (unsigned)v;
        c = (unsigned)(u >> 32) ^ d ^ k1, d = (unsigned)u;
    }
    return a >> 30 == 0;
}
extern "C" __global__ void k(const long long *seed, const float *x, float *y, int n) {
    int i = (blockIdx.x * 256 + threadIdx.x) * 2;
    unsigned k0 = (unsigned)*seed, k1 = (unsigned)(*seed >> 32);
    for (int e = 0; e < 2; e++)
        if (i + e < n)
            y[i + e] = dropped(k0, k1, i + e) ? 0.0f : x[i + e] / 0.75f;
}
