// expect: wrong inaccurate
// row: 38
// tries: adds by compare and swap that gives up after four attempts
// task: tasks/total.task
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
    for (int t = 0; t < 4; t++) {
        unsigned seen = atomicCAS(p, old, __float_as_uint(__uint_as_float(old) + s));
        if (seen == old)
            return;
        old = seen;
    }
}
