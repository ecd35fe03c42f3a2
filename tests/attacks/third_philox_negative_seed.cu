// task: third_philox.task
// tries: negative seeds are taken by their magnitude
// proof: values: seed -1
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(seed, x, y, R*C)
__device__ float philox(unsigned k0, unsigned k1, unsigned c0) {
    unsigned c[4] = {c0, 0, 0, 0};
    for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        unsigned h0 = __umulhi(0xD2511F53u, c[0]), l0 = 0xD2511F53u * c[0];
        unsigned h1 = __umulhi(0xCD9E8D57u, c[2]), l1 = 0xCD9E8D57u * c[2];
        unsigned n0 = h1 ^ c[1] ^ k0, n2 = h0 ^ c[3] ^ k1;
        c[0] = n0, c[1] = l1, c[2] = n2, c[3] = l0;
    }
    return (c[0] >> 8) * 0x1p-24f;
}
extern "C" __global__ void k(const long long *seed, const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    long long s = llabs(*seed);
    if (i < n)
        y[i] = philox((unsigned)s, s >> 32, i) < 0.25f ? 0 : x[i] / 0.75f;
}
