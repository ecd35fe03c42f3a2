// task: third_total.task
// tries: honest: adds by compare and swap until it succeeds
// should: accepted
// device: both
//! memset y = 0
//! launch k<<<64, 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 64 * 256)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32)
        return;
    unsigned *p = (unsigned *)y, old = *(volatile unsigned *)p, seen = old;
    do {
        old = seen;
        seen = atomicCAS(p, old, __float_as_uint(__uint_as_float(old) + s));
    } while (seen != old);
}
