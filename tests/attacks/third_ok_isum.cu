// task: third_isum.task
// tries: honest: halves are added apart with carries by inline assembly
// should: accepted
// device: both
//! launch k<<<R, 1>>>(x, s, m, C)
extern "C" __global__ void k(const long long *x, long long *s, long long *m, int c) {
    unsigned lo = 0, hi = 0;
    long long b = LLONG_MIN;
    for (int j = 0; j < c; j++) {
        long long v = x[(int64_t)blockIdx.x * c + j];
        asm("add.cc.u32 %0, %0, %2; addc.u32 %1, %1, %3;" : "+r"(lo), "+r"(hi) : "r"((unsigned)v), "r"((unsigned)(v >> 32)));
        b = v > b ? v : b;
    }
    s[blockIdx.x] = (long long)((unsigned long long)hi << 32 | lo), m[blockIdx.x] = b;
}
