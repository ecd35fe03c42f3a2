// What the planted bugs share. A kernel is a template whose argument says whether the bug is in it;
// KERNELS makes it NAME and the right one NAME_right. Between the KERNELS of the kernel before and
// its own, a line that a report has to name ends in a comment BUG with the report's kind, and the
// other party's line in a comment PARTY. Assembly is in macros, for then its line is where it is
// used.
#pragma once
#include <cuda.h>

#define KERNELS(name)                                                                              \
    extern "C" __global__ void name(int *x, int *y) { name##_body<true>(x, y); }                   \
    extern "C" __global__ void name##_right(int *x, int *y) { name##_body<false>(x, y); }
#define MAP_KERNELS(name)                                                                          \
    extern "C" __global__ void name(int *x, int *y, const __grid_constant__ CUtensorMap m) {       \
        name##_body<true>(x, y, m);                                                                \
    }                                                                                              \
    extern "C" __global__ void name##_right(int *x, int *y,                                        \
                                            const __grid_constant__ CUtensorMap m) {               \
        name##_body<false>(x, y, m);                                                               \
    }
#define BODY(name) template <bool BUG> __device__ __forceinline__ void name##_body(int *x, int *y)

__device__ __forceinline__ unsigned at(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

#define BAR(op, id, count) asm volatile(op " %0, %1;" ::"r"(id), "r"(count) : "memory")
#define INIT(bar, count)                                                                           \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(&(bar))), "r"(count) : "memory")
#define INVAL(bar) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at(&(bar))) : "memory")
#define ARRIVE(bar)                                                                                \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&(bar))) : "memory")
#define ARRIVE_N(bar, n)                                                                           \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(at(&(bar))), "r"(n)          \
                 : "memory")
#define EXPECT(bar, bytes)                                                                         \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&(bar))),       \
                 "r"(bytes)                                                                        \
                 : "memory")
#define EXPECT_ONLY(bar, bytes)                                                                    \
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at(&(bar))),     \
                 "r"(bytes)                                                                        \
                 : "memory")
#define WAIT(bar, parity)                                                                          \
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"     \
                 "@p bra D;\nbra W;\nD: }" ::"r"(at(&(bar))),                                      \
                 "r"(parity)                                                                       \
                 : "memory")
#define LOAD(to, from, bytes, bar)                                                                 \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "  \
                 "%2, [%3];" ::"r"(at(to)),                                                        \
                 "l"(from), "r"(bytes), "r"(at(&(bar)))                                            \
                 : "memory")
#define STORE(to, from, bytes)                                                                     \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),          \
                 "r"(at(from)), "r"(bytes)                                                         \
                 : "memory")
#define COMMIT_BULK() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define WAIT_BULK() asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define WAIT_BULK_READ() asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define COPY4(to, from)                                                                            \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(to)), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_GROUPS(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory")
#define CLUSTER_WAIT() asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory")
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
__device__ __forceinline__ unsigned map_to(unsigned address, unsigned rank) {
    unsigned r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
    return r;
}
#define READ_PEER(v, address)                                                                      \
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory")
