// 8-bit floats, halves in every rounding, packed integers, rarely used instructions: equal bits on an
// H200. nvcc -ptx -lineinfo -arch=sm_90a
#define OUT 32
#define F1(i, form, x)                                                                             \
    asm("{ .reg .b16 t; " form " t, %1; cvt.u32.u16 %0, t; }" : "=r"(o[i]) : "f"(x))
#define F2(i, form, x, y)                                                                          \
    asm("{ .reg .b16 t; " form " t, %1, %2; cvt.u32.u16 %0, t; }" : "=r"(o[i]) : "f"(x), "f"(y))
#define FROM16(i, form, x)                                                                         \
    asm("{ .reg .b16 t; cvt.u16.u32 t, %1; " form " %0, t; }" : "=r"(o[i]) : "r"(x))
#define TO16(i, form, x)                                                                           \
    asm("{ .reg .b16 t; " form " t, %1; cvt.u32.u16 %0, t; }" : "=r"(o[i]) : "r"(x))
#define TO16W(i, form, x)                                                                          \
    asm("{ .reg .b16 t; " form " t, %1; cvt.u32.u16 %0, t; }" : "=r"(o[i]) : "l"(x))
#define R2(i, form, x, y) asm(form " %0, %1, %2;" : "=r"(o[i]) : "r"(x), "r"(y))
#define R2F(i, form, x, y) asm(form " %0, %1, %2;" : "=r"(o[i]) : "f"(x), "f"(y))
#define R3(i, form, x, y, z) asm(form " %0, %1, %2, %3;" : "=r"(o[i]) : "r"(x), "r"(y), "r"(z))
extern "C" __global__ void small(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned a = in[i], b = in[n + i], c = in[2 * n + i], *o = out + i * OUT;
    float u = __uint_as_float(a), v = __uint_as_float(b);
    long long wide = (long long)((unsigned long long)a << 32 | b);
    F2(0, "cvt.rn.satfinite.e4m3x2.f32", u, v);
    F2(1, "cvt.rn.satfinite.e5m2x2.f32", u, v);
    FROM16(2, "cvt.rn.f16x2.e4m3x2", a);
    FROM16(3, "cvt.rn.f16x2.e5m2x2", a);
    TO16(4, "cvt.rn.satfinite.e4m3x2.f16x2", a);
    TO16(5, "cvt.rn.satfinite.relu.e5m2x2.f16x2", a);
    F1(6, "cvt.rz.f16.f32", u);
    F1(7, "cvt.rm.f16.f32", u);
    F1(8, "cvt.rp.f16.f32", u);
    F1(9, "cvt.rz.bf16.f32", u);
    F1(10, "cvt.rm.bf16.f32", u);
    F1(11, "cvt.rp.bf16.f32", u);
    R2(12, "add.sat.f16x2", a, b);
    R3(13, "fma.rn.sat.f16x2", a, b, c);
    R2F(14, "cvt.rn.relu.f16x2.f32", u, v);
    R2F(15, "cvt.rn.relu.bf16x2.f32", u, v);
    R2(16, "max.s16x2", a, b);
    R3(17, "dp2a.lo.s32.u32", a, b, c);
    R3(18, "dp2a.hi.u32.s32", a, b, c);
    R3(19, "fns.b32", a, (b & 31), (c % 9) - 4);
    R3(20, "vabsdiff4.u32.s32.s32.add", a, b, c);
    R2(21, "set.gtu.u32.f16x2", a, b);
    TO16W(22, "cvt.rn.f16.s64", wide >> (c & 63));
    TO16W(23, "cvt.rn.bf16.s64", wide >> (c & 63));
    R2(24, "add.s16x2", a, b);
    R2(25, "min.relu.s16x2", a, b);
    R2F(26, "cvt.rz.f16x2.f32", u, v);
    R2(27, "set.leu.bf16x2.bf16x2", a, b);
    R2(28, "mul24.lo.s32", a, b);
    R2(29, "bmsk.clamp.b32", a, (c & 63));
    R2(30, "szext.clamp.u32", a, (c & 63));
    double x = __hiloint2double(a, b), y = __hiloint2double(b, c), z = __hiloint2double(c, a);
    double f = __fma_rn(x, y, z);
    o[31] = __double2hiint(f) ^ __double2loint(f);
}
