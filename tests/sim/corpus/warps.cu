// Lanes, warps, blocks and clusters that talk to each other; control flow; what threads know of
// themselves. Compiled by `compile`.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef unsigned u32;
typedef unsigned long long u64;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }

#define SHFL(k, mode, lane, clamp)                                                                 \
    asm volatile("{ .reg .pred p; shfl.sync." mode ".b32 %0|p, %2, %3, %4, -1; selp.u32 %1, 1, 0, p; }" \
                 : "=r"(v), "=r"(ok)                                                               \
                 : "r"(x), "r"(lane), "r"(clamp));                                                 \
    out[(k)*32 + t] = v + ok;
extern "C" __global__ void shuffles(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, x = in[t], v, ok;
    SHFL(0, "up", 1, 0)
    SHFL(1, "up", 3, 0x1800)
    SHFL(2, "down", 1, 31)
    SHFL(3, "down", 5, 0x181f)
    SHFL(4, "bfly", 1, 31)
    SHFL(5, "bfly", 20, 31)
    SHFL(6, "bfly", 9, 0x1807)
    SHFL(7, "idx", 7, 31)
    SHFL(8, "idx", x, 31)
    SHFL(9, "idx", x, 0x1c1f)
    SHFL(10, "up", x & 31, 0)
    SHFL(11, "down", x & 31, 0x101f)
    if (t & 1) // part of a warp
        out[12 * 32 + t] = __shfl_sync(0xaaaaaaaa, x, 5);
    else
        out[12 * 32 + t] = __shfl_xor_sync(0x55555555, x, 2);
    out[13 * 32 + t] = (u32)(__shfl_sync(~0u, (u64)x << 17, t ^ 3) >> 8);
}
extern "C" __global__ void votes(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, x = in[t];
    out[t] = __ballot_sync(~0u, x & 1);
    out[32 + t] = __any_sync(~0u, x == 5) + 2 * __all_sync(~0u, x != 5);
    u32 uni;
    asm volatile("{ .reg .pred p, q; setp.ne.u32 q, %1, 0; vote.sync.uni.pred p, q, -1; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(uni)
                 : "r"(x & 4));
    out[64 + t] = uni;
    int all;
    out[96 + t] = __match_any_sync(~0u, x & 7);
    out[128 + t] = __match_all_sync(~0u, x & 7, &all) + all;
    out[160 + t] = __match_any_sync(~0u, (u64)(x & 3) << 40);
    out[192 + t] = __reduce_add_sync(~0u, x);
    out[224 + t] = __reduce_min_sync(~0u, x) ^ __reduce_max_sync(~0u, x);
    out[256 + t] = __reduce_min_sync(~0u, (int)x) ^ __reduce_max_sync(~0u, (int)x);
    out[288 + t] = __reduce_and_sync(~0u, x | 9) ^ __reduce_or_sync(~0u, x) ^
                   __reduce_xor_sync(~0u, x);
    u32 leader, chosen;
    asm volatile("{ .reg .pred p; elect.sync %0|p, -1; selp.u32 %1, 1, 0, p; }"
                 : "=r"(leader), "=r"(chosen));
    out[320 + t] = leader * 10 + chosen;
    if (x & 1)
        out[352 + t] = __popc(__ballot_sync(__activemask(), 1)) >= 1;
    else
        out[352 + t] = 2;
    __syncwarp();
    if (t < 8)
        out[384 + t] = __reduce_add_sync(0xff, x);
    else
        out[384 + t] = __ballot_sync(0xffffff00, x & 2);
}
extern "C" __global__ void barriers(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    u32 t = threadIdx.x, x = in[t];
    out[t] = __syncthreads_count(x & 1);
    out[128 + t] = __syncthreads_and(x != 7) + 2 * __syncthreads_or(x == 7);
    if (t < 64) {
        s[t] = x;
        asm volatile("barrier.cta.arrive 1, 128;" ::: "memory");
        out[256 + t] = x;
    } else {
        asm volatile("barrier.cta.sync 1, 128;" ::: "memory");
        out[256 + t] = s[127 - t];
    }
    u32 n;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; barrier.cta.red.popc.u32 %0, 2, 128, p; }"
                 : "=r"(n)
                 : "r"(x & 2)
                 : "memory");
    out[384 + t] = n;
    asm volatile("bar.sync %0;" ::"r"(3) : "memory");
    s[t] = n + t;
    asm volatile("bar.warp.sync -1;" ::: "memory");
    out[512 + t] = s[t ^ 1];
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    asm volatile("fence.acq_rel.gpu;\nfence.sc.cta;\nfence.proxy.alias;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
    __nanosleep(20);
    asm volatile("pmevent 3;");
}
extern "C" __global__ void __cluster_dims__(2, 2, 1) identity(u32 *out) {
    u32 b = blockIdx.x + gridDim.x * blockIdx.y, t = threadIdx.x, *o = out + (b * 64 + t) * 24;
#define KNOW(k, name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(o[k]));
    KNOW(0, "tid.x") KNOW(1, "tid.y") KNOW(2, "ntid.x") KNOW(3, "ntid.z") KNOW(4, "ctaid.x")
    KNOW(5, "ctaid.y") KNOW(6, "nctaid.x") KNOW(7, "nctaid.y") KNOW(8, "laneid")
    KNOW(9, "lanemask_eq") KNOW(10, "lanemask_lt") KNOW(11, "lanemask_le") KNOW(12, "lanemask_gt")
    KNOW(13, "lanemask_ge") KNOW(14, "clusterid.x") KNOW(15, "nclusterid.x")
    KNOW(16, "cluster_ctaid.x") KNOW(17, "cluster_ctaid.y") KNOW(18, "cluster_nctaid.y")
    KNOW(19, "cluster_ctarank") KNOW(20, "cluster_nctarank") KNOW(21, "dynamic_smem_size")
    u32 explicit_cluster, c, s;
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }"
                 : "=r"(explicit_cluster));
    o[22] = explicit_cluster;
    u64 before = clock64(), g;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g));
    asm volatile("mov.u32 %0, %%clock;\nmov.u32 %1, %%smid;" : "=r"(c), "=r"(s));
    o[23] = (clock64() > before) + (g != 0) + (s < 1000) + (c + 1 != c);
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) distributed(const u32 *in, u32 *out) {
    __shared__ u32 s[64];
    cg::cluster_group c = cg::this_cluster();
    u32 t = threadIdx.x, rank = c.block_rank(), remote, value, owner;
    s[t] = in[blockIdx.x * 64 + t];
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" :::
                     "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"(at(&s[t])), "r"((rank + 1) & 3));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(remote) : "memory");
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(remote));
    out[blockIdx.x * 192 + t] = value;
    out[blockIdx.x * 192 + 64 + t] = owner;
    c.sync();
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(value + rank) : "memory");
    c.sync();
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(remote), "r"(t) : "memory");
    c.sync();
    out[blockIdx.x * 192 + 128 + t] = s[t];
    c.sync();
}

// Control flow: a switch by table, calls, loops of different length, early exits.
__device__ __noinline__ u32 called(u32 a, u32 b) { return a % (b | 1) + (a >> 3); }
extern "C" __global__ void flow(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, x = in[t], y = 0;
    out[t] = 77;
    switch (x & 15) {
    case 0: y = x * 3; break;
    case 1: y = x + 17; break;
    case 2: y = x / 3; break;
    case 3: y = x ^ 0x55; break;
    case 4: y = x << 3; break;
    case 5: y = x % 7; break;
    case 6: y = x - 9; break;
    case 7: y = x | 12345; break;
    case 8: y = __popc(x); break;
    case 9: y = called(x, 9); break;
    case 10: return;
    case 11: y = x * x; break;
    default: y = called(x, t);
    }
    for (u32 i = 0; i < (x >> 8 & 31); i++) {
        y = y * 1664525 + 1013904223;
        if (y >> 28 == 3)
            continue;
        if (y >> 28 == 7)
            break;
        y ^= i;
    }
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %0, 1000; @p exit; }" ::"r"(y));
    out[t] = y;
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, %1; @p trap; }" ::"r"(y), "r"(y + 1));
}
extern "C" __global__ void by_table(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, x = in[t], y;
    asm volatile("{ .reg .u32 i; and.b32 i, %1, 3;\n"
                 "T: .branchtargets L0, L1, L2, L3;\nbrx.idx i, T;\n"
                 "L0: add.u32 %0, %1, 10; bra.uni E;\nL1: mul.lo.u32 %0, %1, 3; bra.uni E;\n"
                 "L2: not.b32 %0, %1; bra.uni E;\nL3: shr.u32 %0, %1, 4;\nE: }"
                 : "=r"(y)
                 : "r"(x));
    out[t] = y;
}
// Registers given up and taken: the bits stay.
extern "C" __global__ void __maxnreg__(96) registers(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, x = in[t];
    if (t < 128)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");
    else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 152;" ::: "memory");
    out[t] = x * 3;
}
