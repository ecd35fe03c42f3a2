// Tensor copies of every rank and reduction; one box, into or out of shared memory. Compiled by
// `compile`.
#include <cuda.h>

typedef unsigned u32;
typedef unsigned long long u64;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }

#define BOX 1024 // words
#define START 1152 // bytes: a multiple of 128, not of 1024
#define C1 "r"(c0)
#define C2 C1, "r"(c1)
#define C3 C2, "r"(c2)
#define C4 C3, "r"(c3)
#define C5 C4, "r"(c4)

#define LOAD(dims, coords, ...)                                                                    \
    extern "C" __global__ void load_##dims(const __grid_constant__ CUtensorMap map, const u32 *,   \
                                           u32 *out, int bytes, int c0, int c1, int c2, int c3,    \
                                           int c4) {                                               \
        __shared__ __align__(1024) u32 s[START / 4 + BOX];                                         \
        __shared__ u64 bar;                                                                        \
        _Pragma("unroll 1") for (int i = threadIdx.x; i < START / 4 + BOX; i += 32) s[i] = i;      \
        if (threadIdx.x == 0)                                                                      \
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");     \
        asm volatile("fence.proxy.async;" ::: "memory");                                           \
        __syncthreads();                                                                           \
        if (threadIdx.x == 0) {                                                                    \
            asm volatile(                                                                          \
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&bar)),          \
                "r"(bytes)                                                                         \
                : "memory");                                                                       \
            asm volatile("cp.async.bulk.tensor." #dims                                             \
                         ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " coords \
                         "], [%2];" ::"r"(at(s) + START),                                          \
                         "l"(&map), "r"(at(&bar)), __VA_ARGS__                                     \
                         : "memory");                                                              \
        }                                                                                          \
        asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"  \
                     "@p bra D;\nbra W;\nD: }" ::"r"(at(&bar))                                     \
                     : "memory");                                                                  \
        _Pragma("unroll 1") for (int i = threadIdx.x; i < BOX; i += 32) out[i] =                   \
            s[START / 4 + i];                                                                      \
    }
LOAD(1d, "{%3}", C1)
LOAD(2d, "{%3, %4}", C2)
LOAD(3d, "{%3, %4, %5}", C3)
LOAD(4d, "{%3, %4, %5, %6}", C4)
LOAD(5d, "{%3, %4, %5, %6, %7}", C5)

#define STORE(id, op, coords, ...)                                                                 \
    extern "C" __global__ void store_##id(const __grid_constant__ CUtensorMap map, u32 *,          \
                                          const u32 *in, int c0, int c1, int c2, int c3,           \
                                          int c4) {                                                \
        __shared__ __align__(1024) u32 s[START / 4 + BOX];                                         \
        _Pragma("unroll 1") for (int i = threadIdx.x; i < BOX; i += 32) s[START / 4 + i] = in[i];  \
        asm volatile("fence.proxy.async;" ::: "memory");                                           \
        __syncthreads();                                                                           \
        if (threadIdx.x == 0) {                                                                    \
            asm volatile(op ".bulk_group [%1, " coords "], [%0];" ::"r"(at(s) + START), "l"(&map), \
                         __VA_ARGS__                                                               \
                         : "memory");                                                              \
            asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" :::          \
                             "memory");                                                            \
        }                                                                                          \
    }
#define PLAIN(dims) "cp.async.bulk.tensor." #dims ".global.shared::cta"
STORE(1d, PLAIN(1d), "{%2}", C1)
STORE(2d, PLAIN(2d), "{%2, %3}", C2)
STORE(3d, PLAIN(3d), "{%2, %3, %4}", C3)
STORE(4d, PLAIN(4d), "{%2, %3, %4, %5}", C4)
STORE(5d, PLAIN(5d), "{%2, %3, %4, %5, %6}", C5)
#define REDUCE(op) STORE(op, "cp.reduce.async.bulk.tensor.2d.global.shared::cta." #op, "{%2, %3}", C2)
REDUCE(add)
REDUCE(min)
REDUCE(max)
REDUCE(inc)
REDUCE(dec)
REDUCE(and)
REDUCE(or)
REDUCE(xor)

__device__ void begin(u32 bar, int bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}
__device__ void wait(u32 bar) {
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
                 "@p bra D;\nbra W;\nD: }" ::"r"(bar)
                 : "memory");
}
// Each block of a pair loads half a tile for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    multicast_tensor(const __grid_constant__ CUtensorMap map, const u32 *, u32 *out) {
    __shared__ __align__(1024) u32 s[512];
    __shared__ u64 bar;
    u32 rank, t = threadIdx.x;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        begin(at(&bar), 2048);
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&map),
                     "r"(0), "r"(rank * 8));
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" :::
                     "memory");
    if (t == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(at(s) + rank * 1024),
                     "l"(&map), "r"(0), "r"(rank * 8), "r"(at(&bar)), "h"((unsigned short)3)
                     : "memory");
    wait(at(&bar));
    for (int i = t; i < 512; i += 32)
        out[blockIdx.x * 512 + i] = s[i] + rank;
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" :::
                     "memory");
}
// A map that the kernel changes: another address, fewer rows.
extern "C" __global__ void changed_map(const __grid_constant__ CUtensorMap map, const u32 *in,
                                       u64 *scratch, u32 *out) {
    __shared__ __align__(1024) u32 s[256];
    __shared__ u64 bar;
    u32 t = threadIdx.x;
    if (t < 16)
        scratch[t] = ((const u64 *)&map)[t];
    __syncwarp();
    if (t == 0) {
        asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(scratch),
                     "l"(in + 1024)
                     : "memory");
        asm volatile("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 1, %1;" ::"l"(scratch),
                     "r"(6)
                     : "memory");
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(scratch)
                     : "memory");
        begin(at(&bar), 1024);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(at(s)),
                     "l"(scratch), "r"(0), "r"(0), "r"(at(&bar))
                     : "memory");
    }
    __syncwarp();
    wait(at(&bar));
    for (int i = t; i < 256; i += 32)
        out[i] = s[i];
}
