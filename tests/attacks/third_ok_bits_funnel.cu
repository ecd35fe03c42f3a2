// task: third_bits.task
// tries: honest: shifts by a funnel of the sign and the word, logic by lop3
// should: accepted
// device: both
//! launch k<<<ceil_div(N, 128), 128>>>(x, s, m, y, N)
extern "C" __global__ void k(const int *x, const int *s, const int *m, int *y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x, r;
    if (i >= n)
        return;
    unsigned v = __funnelshift_rc(x[i], x[i] < 0 ? ~0u : 0u, s[i]);
    asm("lop3.b32 %0, %1, %2, %3, 0x78;" : "=r"(r) : "r"(x[i]), "r"(v), "r"(m[i]));
    y[i] = r;
}
