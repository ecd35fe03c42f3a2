// task: fresh_blend.task
// tries: honest: words of four pixels with byte permutations where they are whole, division by a multiplication
// proof: none; it is right
// should: accepted
// device: both
//! launch blend<<<ceil_div(H*W, 1024), 256>>>(s, d, a, y, H*W)
__device__ __forceinline__ unsigned mixed(unsigned s, unsigned d, unsigned a) {
    unsigned t = a * s + (255 - a) * d + 127;
    return (t + 1 + (t >> 8)) >> 8;
}
extern "C" __global__ void blend(const unsigned char *s, const unsigned char *d, const unsigned char *a, unsigned char *y, int n) {
    int at = (blockIdx.x * 256 + threadIdx.x) * 4;
    if (at + 4 <= n) {
        unsigned p = *(const unsigned *)(s + at), q = *(const unsigned *)(d + at), r = *(const unsigned *)(a + at), out = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned v = mixed(__byte_perm(p, 0, 0x4440 | k), __byte_perm(q, 0, 0x4440 | k), __byte_perm(r, 0, 0x4440 | k));
            asm("bfi.b32 %0, %1, %0, %2, 8;" : "+r"(out) : "r"(v), "r"(8 * k));
        }
        *(unsigned *)(y + at) = out;
        return;
    }
    for (; at < n; at++)
        y[at] = (unsigned char)mixed(s[at], d[at], a[at]);
}
