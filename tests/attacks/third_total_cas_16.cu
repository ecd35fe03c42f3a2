// task: third_total.task
// tries: adds by compare and swap that gives up after twelve attempts
// proof: more than twelve warps at a time
// should: wrong inaccurate race
// known: seen where more than twelve warps meet in a drawn order, which is rare
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
    unsigned *p = (unsigned *)y, old = *(volatile unsigned *)p;
    for (int t = 0; t < 12; t++) {
        unsigned seen = atomicCAS(p, old, __float_as_uint(__uint_as_float(old) + s));
        if (seen == old)
            return;
        old = seen;
    }
}
