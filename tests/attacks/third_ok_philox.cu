// task: third_philox.task
// tries: honest: 64-bit products by mad.hi in inline assembly
// should: accepted
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(seed, x, y, R*C)
__device__ unsigned high(unsigned a, unsigned b) {
    unsigned h;
    asm("mul.hi.u32 %0, %1, %2;" : "=r"(h) : "r"(a), "r"(b));
    return h;
}
extern "C" __global__ void k(const long long *seed, const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned k0 = (unsigned)*seed, k1 = *seed >> 32, a = i, b = 0, c = 0, d = 0;
    for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        unsigned n0 = high(0xCD9E8D57u, c) ^ b ^ k0, n2 = high(0xD2511F53u, a) ^ d ^ k1;
        b = 0xCD9E8D57u * c, d = 0xD2511F53u * a, a = n0, c = n2;
    }
    if (i < n)
        y[i] = (a >> 8) < 1u << 22 ? 0 : x[i] / 0.75f;
}
