// Single precision where PTX leaves no freedom: equal bits on an H200.
#define OUT 36
extern "C" __global__ void floats(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float a = __uint_as_float(in[i]), b = __uint_as_float(in[n + i]),
          c = __uint_as_float(in[2 * n + i]);
    unsigned *o = out + i * OUT;
    o[0] = __float_as_uint(__fadd_rn(a, b));
    o[1] = __float_as_uint(__fadd_rz(a, b));
    o[2] = __float_as_uint(__fadd_rd(a, b));
    o[3] = __float_as_uint(__fadd_ru(a, b));
    o[4] = __float_as_uint(__fmul_rn(a, b));
    o[5] = __float_as_uint(__fmul_rz(a, b));
    o[6] = __float_as_uint(__fmaf_rn(a, b, c));
    o[7] = __float_as_uint(__fmaf_rd(a, b, c));
    o[8] = __float_as_uint(__fdiv_rn(a, b));
    o[9] = __float_as_uint(__fdiv_ru(a, b));
    o[10] = __float_as_uint(__fsqrt_rn(a));
    o[11] = __float_as_uint(__frcp_rn(a));
    o[12] = __float_as_uint(fminf(a, b));
    o[13] = __float_as_uint(fmaxf(a, b));
    o[14] = __float_as_uint(rintf(a));
    o[15] = __float_as_uint(floorf(a));
    o[16] = __float_as_uint(ceilf(a));
    o[17] = __float_as_uint(truncf(a));
    o[18] = __float_as_uint(roundf(a));
    o[19] = __float_as_uint(copysignf(a, b));
    o[20] = __float_as_uint(__saturatef(a));
    o[21] = __float_as_uint((float)(int)in[i]);
    o[22] = __float_as_uint((float)in[i]);
    o[23] = __float_as_uint((float)((long long)in[i] << 32 | in[n + i]));
    o[24] = __float_as_uint((float)((unsigned long long)in[i] << 32 | in[n + i]));
    o[25] = __float_as_uint((float)(signed char)in[i]);
    o[26] = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | !(a < b) << 4 |
            !(a >= b) << 5 | (a > b && b > c) << 6 | (a > b || b > c) << 7;
    asm("min.NaN.f32 %0, %1, %2;" : "=r"(o[27]) : "r"(in[i]), "r"(in[n + i]));
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(((float *)o)[28]) : "f"(a), "f"(b));
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(((float *)o)[29]) : "f"(a), "f"(b));
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(((float *)o)[30]) : "f"(a), "f"(b), "f"(c));
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(((float *)o)[31]) : "f"(a), "f"(b), "f"(c));
    asm("max.ftz.f32 %0, %1, %2;" : "=f"(((float *)o)[32]) : "f"(a), "f"(b));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(o[33]) : "f"(a));
    asm("{.reg .pred p; testp.subnormal.f32 p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(o[34]) : "f"(a));
    asm("neg.f32 %0, %1;" : "=f"(((float *)o)[35]) : "f"(a));
}
