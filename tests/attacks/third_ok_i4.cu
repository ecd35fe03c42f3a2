// task: third_i4.task
// tries: honest: nibbles by a magic number, the sum of x times the zero point taken away at the end
// should: accepted
// device: both
//! launch k<<<[N, M], 32>>>(x, w, z, s, y, K, N)
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, const unsigned char *w, const int *z, const __half *s, float *y, int kk, int nn) {
    int n = blockIdx.x, m = blockIdx.y;
    float a = 0;
    __half base = __ushort_as_half(0x6400 | z[n]);
    for (int k = threadIdx.x; k < kk; k += 32) {
        unsigned q = w[(int64_t)n * kk + k];
        __half lo = __hsub(__ushort_as_half(0x6400 | (q & 15)), base), hi = __hsub(__ushort_as_half(0x6400 | q >> 4), base);
        a = fmaf(__half2float(x[(int64_t)m * 2 * kk + 2 * k]), __half2float(lo), a);
        a = fmaf(__half2float(x[(int64_t)m * 2 * kk + 2 * k + 1]), __half2float(hi), a);
    }
    for (int d = 16; d; d /= 2)
        a += __shfl_xor_sync(~0u, a, d);
    if (threadIdx.x == 0)
        y[(int64_t)m * nn + n] = a * __half2float(s[n]);
}
