// Loads, stores and atomics of every width, space and order. Compiled by `compile`.
typedef unsigned u32;
typedef unsigned long long u64;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__constant__ u32 table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

// Every width and sign, from an address that is only aligned for it; thread by thread.
#define LD(k, form, reg, type, address)                                                            \
    {                                                                                              \
        type v;                                                                                    \
        asm volatile("ld." form " %0, [%1];" : "=" reg(v) : "l"(address));                         \
        out[(k)*32 + t] = (u32)v;                                                                  \
    }
extern "C" __global__ void load_widths(const char *in, u32 *out) {
    int t = threadIdx.x;
    LD(0, "global.u8", "r", u32, in + 3 * t)
    LD(1, "global.s8", "r", u32, in + 3 * t)
    LD(2, "global.b8", "r", u32, in + 5 * t)
    LD(3, "global.u16", "r", u32, in + 6 * t)
    LD(4, "global.s16", "r", u32, in + 6 * t)
    LD(5, "global.u32", "r", u32, in + 12 * t)
    LD(6, "global.s32", "l", u64, in + 12 * t)
    LD(7, "global.s16", "l", u64, in + 6 * t)
    LD(8, "global.u64", "l", u64, in + 24 * t)
    LD(9, "global.nc.b32", "r", u32, in + 4 * t)
    LD(10, "global.L1::no_allocate.b32", "r", u32, in + 8 * t)
    LD(11, "global.nc.L1::evict_last.L2::128B.b32", "r", u32, in + 8 * t)
    LD(12, "global.ca.b32", "r", u32, in + 4 * t)
    LD(13, "global.cg.b32", "r", u32, in + 4 * t)
    LD(14, "global.cs.b32", "r", u32, in + 4 * t)
    LD(15, "global.lu.b32", "r", u32, in + 4 * t)
    LD(16, "global.cv.b32", "r", u32, in + 4 * t)
    LD(17, "volatile.global.b32", "r", u32, in + 4 * t)
    LD(18, "relaxed.gpu.global.b32", "r", u32, in + 4 * t)
    LD(19, "acquire.gpu.global.b32", "r", u32, in + 4 * t)
    LD(20, "acquire.sys.global.b64", "l", u64, in + 8 * t)
    LD(21, "relaxed.cta.b32", "r", u32, in + 4 * t)
    LD(22, "mmio.relaxed.sys.global.b32", "r", u32, in + 4 * t)
    LD(23, "weak.global.b32", "r", u32, in + 4 * t)
    LD(24, "b32", "r", u32, in + 4 * t)
    u32 v;
    asm volatile("ldu.global.b32 %0, [%1];" : "=r"(v) : "l"(in + 64));
    out[25 * 32 + t] = v;
}
extern "C" __global__ void load_vectors(const char *in, u32 *out) {
    u32 a, b, c, d, t = threadIdx.x;
    u64 p, q;
    asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(in + 8 * t));
    out[t] = a ^ b << 1;
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "l"(in + 16 * t));
    out[32 + t] = a ^ b << 1 ^ c << 2 ^ d << 3;
    asm volatile("ld.global.nc.v2.b64 {%0, %1}, [%2];" : "=l"(p), "=l"(q) : "l"(in + 16 * t));
    out[64 + t] = (u32)(p >> 32) ^ (u32)q;
    asm volatile("ld.global.v4.u8 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "l"(in + 4 * t));
    out[96 + t] = a + 1000 * b + c * d;
    asm volatile("ld.global.v2.s16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(in + 4 * t));
    out[128 + t] = a * 3 + b;
    asm volatile("{ .reg .b128 w; ld.relaxed.gpu.global.b128 w, [%2]; mov.b128 {%0, %1}, w; }"
                 : "=l"(p), "=l"(q)
                 : "l"(in + 16 * t));
    out[160 + t] = (u32)p ^ (u32)(q >> 32);
}
extern "C" __global__ void store_widths(const u32 *in, char *out) {
    int t = threadIdx.x;
    u32 v = in[t];
    u64 w = (u64)v << 32 | in[t + 32];
    char *o = out + t * 128;
    asm volatile("st.global.u8 [%0], %1;" ::"l"(o), "r"(v) : "memory");
    asm volatile("st.global.b16 [%0+2], %1;" ::"l"(o), "r"(v >> 5) : "memory");
    asm volatile("st.global.cs.b32 [%0+4], %1;" ::"l"(o), "r"(v) : "memory");
    asm volatile("st.global.wt.b64 [%0+8], %1;" ::"l"(o), "l"(w) : "memory");
    asm volatile("st.global.v2.b32 [%0+16], {%1, %2};" ::"l"(o), "r"(v), "r"(~v) : "memory");
    asm volatile("st.global.v4.b32 [%0+32], {%1, %2, %1, %2};" ::"l"(o), "r"(v), "r"(~v)
                 : "memory");
    asm volatile("st.global.v2.b64 [%0+48], {%1, %1};" ::"l"(o), "l"(w) : "memory");
    asm volatile("st.volatile.global.b32 [%0+64], %1;" ::"l"(o), "r"(v) : "memory");
    asm volatile("st.relaxed.gpu.global.b32 [%0+68], %1;" ::"l"(o), "r"(v + 1) : "memory");
    asm volatile("st.release.gpu.global.b32 [%0+72], %1;" ::"l"(o), "r"(v + 2) : "memory");
    asm volatile("st.release.sys.b32 [%0+76], %1;" ::"l"(o), "r"(v + 3) : "memory");
    asm volatile("st.mmio.relaxed.sys.global.b32 [%0+80], %1;" ::"l"(o), "r"(v + 4) : "memory");
    asm volatile("st.global.cg.v4.u8 [%0+84], {%1, %2, %1, %2};" ::"l"(o), "r"(v), "r"(v >> 8)
                 : "memory");
    asm volatile("st.weak.global.L1::evict_first.b32 [%0+88], %1;" ::"l"(o), "r"(v + 5) : "memory");
    asm volatile("{ .reg .b128 w; mov.b128 w, {%1, %1}; st.relaxed.gpu.global.b128 [%0+96], w; }" ::
                     "l"(o),
                 "l"(w)
                 : "memory");
}
extern "C" __global__ void spaces(const u32 *in, u32 *out) {
    __shared__ u32 s[64];
    extern __shared__ u32 dynamic[];
    u32 t = threadIdx.x, local[16];
    for (int i = 0; i < 16; i++)
        local[(i * 5 + t) & 15] = in[t] + i;
    s[t] = in[t];
    dynamic[t] = in[t] * 2;
    __syncthreads();
    const u32 *generic = t & 1 ? s : t & 2 ? local : t & 4 ? in : dynamic;
    out[t] = generic[t & 15];
    out[32 + t] = local[in[t] & 15];
    out[64 + t] = table[in[t] & 7];
    out[96 + t] = (__isGlobal(generic) ? 1 : 0) + (__isShared(generic) ? 2 : 0) +
                  (__isLocal(generic) ? 4 : 0) + (__isConstant(table) ? 8 : 0);
    u32 v, w;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(v), "=r"(w)
                 : "r"(at(s) + (t & 15) * 8)
                 : "memory");
    out[128 + t] = v + w;
    asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(v) : "r"(at(s) + t) : "memory");
    out[160 + t] = v;
}
extern "C" __global__ void hints(u32 *in, u32 *out) {
    u32 t = threadIdx.x, v;
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(in + t));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(in));
    asm volatile("prefetchu.L1 [%0];" ::"l"(in));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(in));
    asm volatile("ld.global.L2::cache_hint.b32 %0, [%1], %2;" : "=r"(v) : "l"(in + t), "l"(policy));
    asm volatile("st.global.L2::cache_hint.b32 [%0], %1, %2;" ::"l"(out + t), "r"(v), "l"(policy)
                 : "memory");
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], 128;" ::"l"(in));
    asm volatile("atom.global.add.L2::cache_hint.u32 %0, [%1], 5, %2;"
                 : "=r"(v)
                 : "l"(out + 32 + t), "l"(policy)
                 : "memory");
    out[64 + t] = v;
}

// An atomic of each kind, one address a thread: what it returns and what it leaves.
#define ATOM(k, form, reg, type, v)                                                                \
    {                                                                                              \
        type old;                                                                                  \
        asm volatile("atom." form " %0, [%1], %2;"                                                 \
                     : "=" reg(old)                                                                \
                     : "l"((type *)m + (k)*32 + t), reg((type)(v))                                 \
                     : "memory");                                                                  \
        ((type *)out)[(k)*32 + t] = old;                                                           \
    }
#define RED(k, form, reg, type, v)                                                                 \
    asm volatile("red." form " [%0], %1;" ::"l"((type *)m + (k)*32 + t), reg((type)(v)) : "memory");
extern "C" __global__ void atoms_32(u32 *m, const u32 *in, u32 *out) {
    u32 t = threadIdx.x, v = in[t];
    ATOM(0, "global.add.u32", "r", u32, v)
    ATOM(1, "global.add.s32", "r", u32, v)
    ATOM(2, "global.min.u32", "r", u32, v)
    ATOM(3, "global.min.s32", "r", u32, v)
    ATOM(4, "global.max.u32", "r", u32, v)
    ATOM(5, "global.max.s32", "r", u32, v)
    ATOM(6, "global.and.b32", "r", u32, v)
    ATOM(7, "global.or.b32", "r", u32, v)
    ATOM(8, "global.xor.b32", "r", u32, v)
    ATOM(9, "global.exch.b32", "r", u32, v)
    ATOM(10, "global.inc.u32", "r", u32, v)
    ATOM(11, "global.dec.u32", "r", u32, v)
    ATOM(12, "acq_rel.gpu.global.add.u32", "r", u32, v)
    ATOM(13, "relaxed.sys.global.max.u32", "r", u32, v)
    ATOM(14, "release.cta.add.u32", "r", u32, v)
    RED(15, "global.add.u32", "r", u32, v)
    RED(16, "global.min.s32", "r", u32, v)
    RED(17, "global.max.u32", "r", u32, v)
    RED(18, "global.and.b32", "r", u32, v)
    RED(19, "global.or.b32", "r", u32, v)
    RED(20, "global.xor.b32", "r", u32, v)
    RED(21, "global.inc.u32", "r", u32, v)
    RED(22, "global.dec.u32", "r", u32, v)
    RED(23, "release.gpu.global.add.u32", "r", u32, v)
    u32 old;
    asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(m + 24 * 32 + t), "r"(t & 1 ? v : m[24 * 32 + t]), "r"(v + 1)
                 : "memory");
    out[24 * 32 + t] = old;
}
extern "C" __global__ void atoms_64(u64 *m, const u64 *in, u64 *out) {
    u32 t = threadIdx.x;
    u64 v = in[t];
    ATOM(0, "global.add.u64", "l", u64, v)
    ATOM(1, "global.min.u64", "l", u64, v)
    ATOM(2, "global.min.s64", "l", u64, v)
    ATOM(3, "global.max.u64", "l", u64, v)
    ATOM(4, "global.max.s64", "l", u64, v)
    ATOM(5, "global.and.b64", "l", u64, v)
    ATOM(6, "global.or.b64", "l", u64, v)
    ATOM(7, "global.xor.b64", "l", u64, v)
    ATOM(8, "global.exch.b64", "l", u64, v)
    RED(9, "global.add.u64", "l", u64, v)
    RED(10, "global.min.s64", "l", u64, v)
    RED(11, "global.xor.b64", "l", u64, v)
    u64 old, other;
    asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(m + 12 * 32 + t), "l"(t & 1 ? v : m[12 * 32 + t]), "l"(v + 1)
                 : "memory");
    out[12 * 32 + t] = old;
    u64 *wide = m + 13 * 32 + 2 * t;
    asm volatile("{ .reg .b128 a, b, o; mov.b128 a, {%3, %4}; mov.b128 b, {%5, %3};\n"
                 "atom.global.cas.b128 o, [%2], a, b; mov.b128 {%0, %1}, o; }"
                 : "=l"(old), "=l"(other)
                 : "l"(wide), "l"(wide[0]), "l"(wide[1]), "l"(v)
                 : "memory");
    out[13 * 32 + t] = old ^ other;
    asm volatile("{ .reg .b128 b, o; mov.b128 b, {%3, %3};\n"
                 "atom.global.exch.b128 o, [%2], b; mov.b128 {%0, %1}, o; }"
                 : "=l"(old), "=l"(other)
                 : "l"(wide), "l"(v)
                 : "memory");
    out[14 * 32 + t] = old ^ other;
}
extern "C" __global__ void atoms_f32(float *m, const float *in, float *out) {
    u32 t = threadIdx.x;
    ATOM(0, "global.add.f32", "f", float, in[t])
    RED(1, "global.add.f32", "f", float, in[t])
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %1, %2};" ::"l"(m + 64 + 4 * t), "f"(in[t]),
                 "f"(-in[t])
                 : "memory");
    float a, b;
    asm volatile("atom.global.v2.f32.add {%0, %1}, [%2], {%3, %4};"
                 : "=f"(a), "=f"(b)
                 : "l"(m + 192 + 2 * t), "f"(in[t]), "f"(-in[t])
                 : "memory");
    out[32 + t] = a;
    out[64 + t] = b;
}
extern "C" __global__ void atoms_f64(double *m, const double *in, double *out) {
    u32 t = threadIdx.x;
    ATOM(0, "global.add.f64", "d", double, in[t])
    RED(1, "global.add.f64", "d", double, in[t])
}
extern "C" __global__ void atoms_halves(u32 *m, const u32 *in, u32 *out) {
    u32 t = threadIdx.x;
    ATOM(0, "global.add.noftz.f16x2", "r", u32, in[t])
    RED(1, "global.add.noftz.f16x2", "r", u32, in[t])
    ATOM(2, "global.add.noftz.bf16x2", "r", u32, in[32 + t])
    RED(3, "global.add.noftz.bf16x2", "r", u32, in[32 + t])
    unsigned short v = (unsigned short)in[t], old, *h = (unsigned short *)(m + 128);
    asm volatile("atom.global.add.noftz.f16 %0, [%1], %2;"
                 : "=h"(old)
                 : "l"(h + t), "h"(v)
                 : "memory");
    out[128 + t] = old;
    asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;"
                 : "=h"(old)
                 : "l"(h + 32 + t), "h"(h[32 + t]), "h"(v)
                 : "memory");
    out[160 + t] = old;
    asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %1, %1, %1};" ::"l"(m + 192 + 4 * t),
                 "r"(in[t])
                 : "memory");
    asm volatile("red.global.max.noftz.v2.bf16x2 [%0], {%1, %1};" ::"l"(m + 320 + 2 * t),
                 "r"(in[32 + t])
                 : "memory");
    asm volatile("red.global.min.noftz.v2.f16x2 [%0], {%1, %1};" ::"l"(m + 384 + 2 * t), "r"(in[t])
                 : "memory");
}
// In shared memory, all threads on a few addresses: integers, so that no order shows.
extern "C" __global__ void atoms_shared(const u32 *in, u32 *out) {
    __shared__ u32 s[64];
    __shared__ u64 w[8];
    __shared__ float f[4];
    u32 t = threadIdx.x, v = in[t];
    if (t < 64)
        s[t] = t * 7;
    if (t < 8)
        w[t] = t;
    if (t < 4)
        f[t] = 0;
    __syncthreads();
    atomicAdd(&s[t & 7], v);
    atomicMin(&s[8 + (t & 7)], v);
    atomicMax((int *)&s[16 + (t & 7)], (int)v);
    atomicAnd(&s[24 + (t & 7)], v);
    atomicOr(&s[32 + (t & 7)], v);
    atomicXor(&s[40 + (t & 7)], v);
    atomicInc(&s[48 + (t & 7)], 9);
    atomicDec(&s[56 + (t & 7)], 5);
    atomicAdd(&w[t & 7], (u64)v << 20);
    atomicAdd(&f[t & 3], (float)(v & 15));
    __syncthreads();
    if (t < 64)
        out[t] = s[t];
    if (t < 8)
        out[64 + t] = (u32)(w[t] >> 16);
    if (t < 4)
        out[72 + t] = __float_as_uint(f[t]);
}
