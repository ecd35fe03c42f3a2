// Integer arithmetic, one result a word. Compared bit by bit with what an H200 gave.
#define OUT 40
extern "C" __global__ void ints(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned a = in[i], b = in[n + i], c = in[2 * n + i];
    int s = a, t = b;
    long long w = (long long)a << 32 | b, v = (long long)c << 32 | a;
    unsigned *o = out + i * OUT;
    o[0] = __clz(a);
    o[1] = __popc(a) + __ffs(b);
    o[2] = __brev(a);
    o[3] = __mulhi(s, t);
    o[4] = __umulhi(a, b);
    o[5] = __byte_perm(a, b, c);
    o[6] = __funnelshift_l(a, b, c);
    o[7] = __funnelshift_rc(a, b, c & 63);
    o[8] = t ? s / t : 0;
    o[9] = b ? a % b : 0;
    o[10] = abs(s) + min(s, t);
    o[11] = max(a, b) ^ ~c;
    o[12] = s >> (c & 31);
    o[13] = a << (b & 31);
    o[14] = __dp4a(s, t, (int)c);
    o[15] = __sad(s, t, c);
    o[16] = (signed char)a + (short)b;
    o[17] = (unsigned char)a * (unsigned short)b;
    o[18] = (unsigned)(w / (v | 1));
    o[19] = (unsigned)((unsigned long long)w % ((unsigned long long)v | 1));
    o[20] = (unsigned)__mul64hi(w, v);
    o[21] = (unsigned)(__umul64hi(w, v) >> 32);
    o[22] = __clzll(w) + __popcll(v) + __ffsll(w);
    o[23] = (unsigned)(__brevll(w) >> 7);
    o[24] = (unsigned)(w >> (c & 63));
    o[25] = (unsigned)((w << (c & 63)) >> 32);
    o[26] = __float2int_rz(__uint_as_float(a));
    o[27] = __float2uint_rn(__uint_as_float(a));
    o[28] = (unsigned)(__float2ll_ru(__uint_as_float(a)) >> 32);
    o[29] = __float2int_rd(__uint_as_float(b));
    o[30] = __vaddus4(a, b);
    o[31] = a < b && s > t || c == 0;
    asm("shl.b32 %0, %1, %2;" : "=r"(o[32]) : "r"(a), "r"(b)); // shift amounts past the width
    asm("shr.s32 %0, %1, %2;" : "=r"(o[33]) : "r"(a), "r"(b));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(o[34]) : "r"(a), "r"(b), "r"(c));
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(o[35]) : "r"(a), "r"(b & 63), "r"(c & 63));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(o[36]) : "r"(a), "r"(b), "r"(c & 63), "r"(a & 63));
    asm("add.sat.s32 %0, %1, %2;" : "=r"(o[37]) : "r"(a), "r"(b));
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(o[38]) : "r"(a), "r"(b), "r"(c));
    asm("div.s32 %0, %1, %2;" : "=r"(o[39]) : "r"(a), "r"(b)); // 0 and INT_MIN / -1 among them
}
