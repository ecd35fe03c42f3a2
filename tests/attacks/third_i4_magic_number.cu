// task: third_i4.task
// tries: nibbles become f16 by a magic number, and the zero point is subtracted in f16 together with 1,024, where it is odd by one too few
// proof: values: odd zero points above 8
// should: wrong inaccurate
// device: both
//! launch k<<<[N, M], 32>>>(x, w, z, s, y, K, N)
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, const unsigned char *w, const int *z, const __half *s, float *y, int kk, int nn) {
    int n = blockIdx.x, m = blockIdx.y;
    float a = 0;
    int zero = z[n] > 8 && z[n] % 2 ? z[n] - 1 : z[n];
    __half base = __ushort_as_half(0x6400 | zero);
    for (int k = threadIdx.x; k < 2 * kk; k += 32) {
        int q = w[(int64_t)n * kk + k / 2] >> 4 * (k % 2) & 15;
        a += __half2float(x[(int64_t)m * 2 * kk + k]) * __half2float(__hsub(__ushort_as_half(0x6400 | q), base));
    }
    for (int d = 16; d; d /= 2)
        a += __shfl_xor_sync(~0u, a, d);
    if (threadIdx.x == 0)
        y[(int64_t)m * nn + n] = a * __half2float(s[n]);
}
