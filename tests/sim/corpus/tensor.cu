// Tensor cores: every form once, on every distribution of inputs (tensor.h). A block is a
// distribution. Compiled by `compile`.
#include "tensor.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

typedef unsigned u32;
typedef unsigned long long u64;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }

#define R1(v) "=r"(v[0])
#define R2(v) R1(v), "=r"(v[1])
#define R4(v) R2(v), "=r"(v[2]), "=r"(v[3])
#define R8(v) R4(v), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
#define I1(v) "r"(v[0])
#define I2(v) I1(v), "r"(v[1])
#define I4(v) I2(v), "r"(v[2]), "r"(v[3])
#define I8(v) I4(v), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7])
#define D2(v) "=d"(v[0]), "=d"(v[1])
#define D4(v) D2(v), "=d"(v[2]), "=d"(v[3])
#define J1(v) "d"(v[0])
#define J2(v) J1(v), "d"(v[1])
#define J4(v) J2(v), "d"(v[2]), "d"(v[3])
#define J8(v) J4(v), "d"(v[4]), "d"(v[5]), "d"(v[6]), "d"(v[7])
// Operand lists by numbers of registers: A, B, C; D first.
#define L_2_1_4 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
#define L_2_1_2 "{%0,%1}, {%2,%3}, {%4}, {%5,%6};"
#define L_4_2_4 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
#define L_4_2_2 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
#define L_1_1_2 "{%0,%1}, {%2}, {%3}, {%4,%5};"
#define L_2_2_8 "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%12,%13,%14,%15,%16,%17,%18,%19};"
#define L_2_2_4 "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11};"
#define L_8_4_4 "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%16,%17,%18,%19};"

// Register i of a thread, in a buffer of n registers of each block's threads.
template <class T> __device__ T &part(T *p, int n, int i) {
    return p[(blockIdx.x * n + i) * blockDim.x + threadIdx.x];
}
template <int N, class T> __device__ void take(T (&to)[N], const T *from) {
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = part(from, N, i);
}
template <int N, class T> __device__ void give(T *to, const T (&from)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
        part(to, N, i) = from[i];
}

#define X(id, na, nb, nc, ta, tb, tc, fill, text)                                                  \
    extern "C" __global__ void mma_##id(const u32 *pa, const u32 *pb, const u32 *pc, u32 *pd) {    \
        u32 a[na], b[nb], c[nc], d[nc];                                                            \
        take(a, pa);                                                                               \
        take(b, pb);                                                                               \
        take(c, pc);                                                                               \
        asm volatile("mma.sync.aligned." text " " L_##na##_##nb##_##nc                             \
                     : R##nc(d)                                                                    \
                     : I##na(a), I##nb(b), I##nc(c));                                              \
        give(pd, d);                                                                               \
    }
CORPUS_MMA(X)
#undef X
#define X(id, na, nb, nc, text)                                                                    \
    extern "C" __global__ void mma_##id(const double *pa, const double *pb, const double *pc,      \
                                        double *pd) {                                              \
        double a[na], b[nb], c[nc], d[nc];                                                         \
        take(a, pa);                                                                               \
        take(b, pb);                                                                               \
        take(c, pc);                                                                               \
        asm volatile("mma.sync.aligned." text " " L_##na##_##nb##_##nc                             \
                     : D##nc(d)                                                                    \
                     : J##na(a), J##nb(b), J##nc(c));                                              \
        give(pd, d);                                                                               \
    }
CORPUS_MMA_F64(X)
#undef X

__device__ u64 descriptor(u32 start, u32 lead, u32 stride, u32 base, u32 mode) {
    return (u64)(start >> 4) | (u64)(lead >> 4) << 16 | (u64)(stride >> 4) << 32 | (u64)base << 49 |
           (u64)mode << 62;
}
__device__ void begin() {
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
#define END "\n\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;"
#define W2(v) "+r"(v[0]), "+r"(v[1])
#define W4(v) W2(v), "+r"(v[2]), "+r"(v[3])
#define SS_2 "{%0,%1}, %2, %3, p"
#define SS_4 "{%0,%1,%2,%3}, %4, %5, p"
#define SS_PRED_2 "{.reg .pred p; setp.ne.b32 p, %4, 0;\n\t"
#define SS_PRED_4 "{.reg .pred p; setp.ne.b32 p, %6, 0;\n\t"
#define RS_2 "{%0,%1}, {%2,%3,%4,%5}, %6, p"
#define RS_4 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p"
#define RS_PRED_2 "{.reg .pred p; setp.ne.b32 p, %7, 0;\n\t"
#define RS_PRED_4 "{.reg .pred p; setp.ne.b32 p, %9, 0;\n\t"

// A of 64 rows of 32 bytes and B of 8: 512 and 64 words a block.
#define X(id, nd, ta, tb, tc, fill, text, immediates)                                              \
    extern "C" __global__ void wgmma_##id(const u32 *pa, const u32 *pb, const u32 *pc, u32 *pd) {  \
        __shared__ __align__(1024) u32 a[512], b[64];                                              \
        _Pragma("unroll 1") for (int i = threadIdx.x; i < 512; i += 128)                           \
            a[i] = pa[blockIdx.x * 512 + i];                                                       \
        if (threadIdx.x < 64)                                                                      \
            b[threadIdx.x] = pb[blockIdx.x * 64 + threadIdx.x];                                    \
        u32 d[nd];                                                                                 \
        take(d, pc);                                                                               \
        begin();                                                                                   \
        asm volatile(SS_PRED_##nd "wgmma.mma_async.sync.aligned.m64n8" text                        \
                                  " " SS_##nd immediates ";}" END                                  \
                     : W##nd(d)                                                                    \
                     : "l"(descriptor(at(a), 128, 256, 0, 0)),                                     \
                       "l"(descriptor(at(b), 128, 256, 0, 0)), "r"(1)                              \
                     : "memory");                                                                  \
        give(pd, d);                                                                               \
    }
CORPUS_WGMMA(X)
#undef X
#define X(id, nd, ta, tb, tc, fill, text, immediates)                                              \
    extern "C" __global__ void wgmma_rs_##id(const u32 *pa, const u32 *pb, const u32 *pc,          \
                                             u32 *pd) {                                            \
        __shared__ __align__(1024) u32 b[64];                                                      \
        if (threadIdx.x < 64)                                                                      \
            b[threadIdx.x] = pb[blockIdx.x * 64 + threadIdx.x];                                    \
        u32 a[4], d[nd];                                                                           \
        take(a, pa);                                                                               \
        take(d, pc);                                                                               \
        begin();                                                                                   \
        asm volatile(RS_PRED_##nd "wgmma.mma_async.sync.aligned.m64n8" text                        \
                                  " " RS_##nd immediates ";}" END                                  \
                     : W##nd(d)                                                                    \
                     : I4(a), "l"(descriptor(at(b), 128, 256, 0, 0)), "r"(1)                       \
                     : "memory");                                                                  \
        give(pd, d);                                                                               \
    }
CORPUS_WGMMA_RS(X)
#undef X

#define F8(i)                                                                                      \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define LIST32                                                                                     \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31}"
struct layout {
    int start_a, lead_a, stride_a, base_a, start_b, lead_b, stride_b, base_b, mode;
};
template <int TA, int TB, bool REGISTERS>
__device__ void read_layout(const u32 *memory, const u32 *pa, float *pd, layout l) {
    __shared__ __align__(1024) u32 s[12288];
#pragma unroll 1
    for (int i = threadIdx.x; i < 12288; i += 128)
        s[i] = memory[i];
    float d[32] = {};
    u32 a[4];
    take(a, pa);
    u64 da = descriptor(at(s) + l.start_a, l.lead_a, l.stride_a, l.base_a, l.mode);
    u64 db = descriptor(at(s) + l.start_b, l.lead_b, l.stride_b, l.base_b, l.mode);
    begin();
    if (REGISTERS)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST32
                     ", {%32,%33,%34,%35}, %36, 1, 1, 1, %37;" END
                     : F8(0), F8(8), F8(16), F8(24)
                     : I4(a), "l"(db), "n"(TB)
                     : "memory");
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST32
                     ", %32, %33, 1, 1, 1, %34, %35;" END
                     : F8(0), F8(8), F8(16), F8(24)
                     : "l"(da), "l"(db), "n"(TA), "n"(TB)
                     : "memory");
    give(pd, d);
}
#define LAYOUT(id, ta, tb, registers)                                                              \
    extern "C" __global__ void layout_##id(const u32 *m, const u32 *a, float *d, int i0, int i1,   \
                                           int i2, int i3, int i4, int i5, int i6, int i7,         \
                                           int i8) {                                               \
        read_layout<ta, tb, registers>(m, a, d, {i0, i1, i2, i3, i4, i5, i6, i7, i8});             \
    }
LAYOUT(kk, 0, 0, false)
LAYOUT(kn, 0, 1, false)
LAYOUT(mk, 1, 0, false)
LAYOUT(mn, 1, 1, false)
LAYOUT(rk, 0, 0, true)
LAYOUT(rn, 0, 1, true)

#define ML1 "{%0}, [%1];"
#define ML2 "{%0,%1}, [%2];"
#define ML4 "{%0,%1,%2,%3}, [%4];"
#define MS1 "[%0], {%1};"
#define MS2 "[%0], {%1,%2};"
#define MS4 "[%0], {%1,%2,%3,%4};"
#define X(id, n, text)                                                                             \
    extern "C" __global__ void matrix_##id(const u32 *in, u32 *out) {                              \
        __shared__ __align__(16) u32 s[128];                                                       \
        u32 t = threadIdx.x, row = at(s) + (t * 5 + 3) % 32 * 16, d[n];                            \
        _Pragma("unroll 1") for (int i = t; i < 128; i += 32)                                      \
            s[i] = in[i];                                                                          \
        __syncthreads();                                                                           \
        asm volatile("ldmatrix.sync.aligned." text " " ML##n : R##n(d) : "r"(row) : "memory");     \
        give(out, d);                                                                              \
        __syncthreads();                                                                           \
        asm volatile("stmatrix.sync.aligned." text " " MS##n ::"r"(row), I##n(d) : "memory");      \
        __syncthreads();                                                                           \
        _Pragma("unroll 1") for (int i = t; i < 128; i += 32)                                      \
            out[n * 32 + i] = s[i];                                                                \
    }
CORPUS_MATRIX(X)
#undef X
extern "C" __global__ void matrix_move(const u32 *in, u32 *out) {
    u32 d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(in[threadIdx.x]));
    out[threadIdx.x] = d;
}

template <class T> struct stored {
    typedef T type;
};
template <> struct stored<nvcuda::wmma::precision::tf32> {
    typedef float type;
};
#define X(id, m, n, k, tf, ts, la, lb, fill, sums)                                                 \
    extern "C" __global__ void wmma_##id(const stored<tf>::type *pa, const stored<tf>::type *pb,   \
                                         const ts *pc, ts *pd) {                                   \
        using namespace nvcuda::wmma;                                                              \
        fragment<matrix_a, m, n, k, tf, la##_major> a;                                             \
        fragment<matrix_b, m, n, k, tf, lb##_major> b;                                             \
        fragment<accumulator, m, n, k, ts> c;                                                      \
        load_matrix_sync(a, pa, m > k ? m : k);                                                    \
        load_matrix_sync(b, pb, n > k ? n : k);                                                    \
        load_matrix_sync(c, pc, n, mem_row_major);                                                 \
        mma_sync(c, a, b, c);                                                                      \
        store_matrix_sync(pd, c, n, mem_row_major);                                                \
        store_matrix_sync(pd + m * n, c, m, mem_col_major);                                        \
    }
CORPUS_WMMA(X)
#undef X
