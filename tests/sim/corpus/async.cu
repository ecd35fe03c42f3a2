// Copies that end later, and what waits for them. Compiled by `compile`.
typedef unsigned u32;
typedef unsigned long long u64;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u32 bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(u32 bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}
__device__ void wait(u32 bar, int parity) {
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra D;\nbra W;\nD: }" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}
__device__ void bulk_done() {
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void cp_async(const u32 *in, u32 *out) {
    __shared__ __align__(16) u32 s[4][128];
    u32 t = threadIdx.x;
    for (int k = 0; k < 4; k++)
        for (int i = t; i < 128; i += 32)
            s[k][i] = 0xeeeeeeee;
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(&s[0][t])), "l"(in + t)
                 : "memory");
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8;" ::"r"(at(&s[1][2 * t])),
                 "l"(in + 2 * t)
                 : "memory");
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(&s[2][4 * t])), "l"(in + 4 * t)
                 : "memory");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at(&s[3][4 * t])),
                 "l"(in + 4 * t), "r"(t % 5 * 4)
                 : "memory");
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncwarp();
    out[t] = s[0][31 - t] + s[1][63 - t];
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    for (int i = t; i < 128; i += 32) {
        out[32 + i] = s[2][127 - i];
        out[160 + i] = s[3][127 - i];
    }
}
extern "C" __global__ void cp_async_arrives(const u32 *in, u32 *out) {
    __shared__ u32 s[2][64];
    __shared__ u64 bar[2];
    u32 t = threadIdx.x;
    if (t == 0)
        init(at(&bar[0]), 64), init(at(&bar[1]), 64);
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(&s[0][t])), "l"(in + t)
                 : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at(&bar[0]))
                 : "memory");
    wait(at(&bar[0]), 0);
    out[t] = s[0][63 - t];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(&s[1][t])), "l"(in + 64 + t)
                 : "memory");
    asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(at(&bar[1])) : "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&bar[1])) : "memory");
    wait(at(&bar[1]), 0);
    out[64 + t] = s[1][63 - t];
}
extern "C" __global__ void bulk(const u32 *in, u32 *out) {
    __shared__ __align__(128) u32 s[256];
    __shared__ u64 bar;
    u32 t = threadIdx.x;
    if (t == 0) {
        init(at(&bar), 1);
        expect(at(&bar), 1024);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                     "16, [%2];" ::"r"(at(s)),
                     "l"(in + 4), "r"(at(&bar))
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                     "1008, [%2];" ::"r"(at(s) + 16),
                     "l"(in + 8), "r"(at(&bar))
                     : "memory");
    }
    __syncthreads();
    wait(at(&bar), 0);
    for (int i = t; i < 256; i += 64)
        s[i] += i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(out),
                     "r"(at(s))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(out + 128),
                     "r"(at(s) + 512)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 1;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
// Reductions by bulk copies into global memory: 64 words of each kind.
#define BULK_RED(k, form)                                                                          \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." form                        \
                 " [%0], [%1], 256;" ::"l"(m + (k)*64),                                            \
                 "r"(at(s))                                                                        \
                 : "memory");
extern "C" __global__ void bulk_reduce_integers(const u32 *in, u32 *m) {
    __shared__ __align__(128) u32 s[64];
    s[threadIdx.x] = in[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x)
        return;
    BULK_RED(0, "add.u32")
    BULK_RED(1, "add.s32")
    BULK_RED(2, "add.u64")
    BULK_RED(3, "min.u32")
    BULK_RED(4, "min.s32")
    BULK_RED(5, "max.s32")
    BULK_RED(6, "max.u64")
    BULK_RED(7, "min.s64")
    BULK_RED(8, "inc.u32")
    BULK_RED(9, "dec.u32")
    BULK_RED(10, "and.b32")
    BULK_RED(11, "or.b32")
    BULK_RED(12, "xor.b64")
    bulk_done();
}
#define BULK_RED_FLOATS(id, ...)                                                                   \
    extern "C" __global__ void bulk_reduce_##id(const u32 *in, u32 *m) {                           \
        __shared__ __align__(128) u32 s[64];                                                       \
        s[threadIdx.x] = in[threadIdx.x];                                                          \
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                               \
        __syncthreads();                                                                           \
        if (threadIdx.x)                                                                           \
            return;                                                                                \
        __VA_ARGS__ bulk_done();                                                                   \
    }
BULK_RED_FLOATS(f16, BULK_RED(0, "add.noftz.f16") BULK_RED(1, "min.f16") BULK_RED(2, "max.f16"))
BULK_RED_FLOATS(bf16, BULK_RED(0, "add.noftz.bf16") BULK_RED(1, "min.bf16") BULK_RED(2, "max.bf16"))
BULK_RED_FLOATS(f32, BULK_RED(0, "add.f32"))
BULK_RED_FLOATS(f64, BULK_RED(0, "add.f64"))

// Between the blocks of a cluster: bulk copy, st.async, red.async, arrivals from afar.
extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbour(const u32 *in, u32 *out) {
    __shared__ __align__(128) u32 s[64], r[64];
    __shared__ u64 bar, empty;
    u32 t = threadIdx.x, rank, to, bar_to, empty_to;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    s[t] = in[blockIdx.x * 64 + t];
    r[t] = 0;
    if (t == 0) {
        init(at(&bar), 1);
        init(at(&empty), 64);
        expect(at(&bar), 128 + 128);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" :::
                     "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at(r)), "r"(rank ^ 1));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(bar_to) : "r"(at(&bar)), "r"(rank ^ 1));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(empty_to)
                 : "r"(at(&empty)), "r"(rank ^ 1));
    if (t == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], "
                     "[%1], 128, [%2];" ::"r"(to),
                     "r"(at(s)), "r"(bar_to)
                     : "memory");
    if (t >= 32)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, "
                     "[%2];" ::"r"(to + 4 * t),
                     "r"(s[t] + 1), "r"(bar_to)
                     : "memory");
    wait(at(&bar), 0);
    out[blockIdx.x * 64 + t] = r[t];
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(empty_to)
                 : "memory");
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, "
                 "[%0], 0;\n@p bra D;\nbra W;\nD: }" ::"r"(at(&empty))
                 : "memory");
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" :::
                     "memory");
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) red_async(const u32 *in, u32 *out) {
    __shared__ __align__(128) u32 r[64];
    __shared__ u64 bar;
    u32 t = threadIdx.x, rank, to, bar_to;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    r[t] = in[64 + t];
    if (t == 0) {
        init(at(&bar), 1);
        expect(at(&bar), 256);
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" :::
                     "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at(r)), "r"(rank ^ 1));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(bar_to) : "r"(at(&bar)), "r"(rank ^ 1));
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
                 "[%0], %1, [%2];" ::"r"(to + 4 * t),
                 "r"(in[t]), "r"(bar_to)
                 : "memory");
    wait(at(&bar), 0);
    out[blockIdx.x * 64 + t] = r[t];
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" :::
                     "memory");
}

// Steps on one mbarrier, with what each of them answers: {step, value} pairs in, {pending, even,
// odd} out.
#define STEP(v, ...)                                                                               \
    {                                                                                              \
        u64 state = 0;                                                                             \
        u32 even, odd, pending = 0, value = (v);                                                   \
        __VA_ARGS__                                                                                \
        if (state)                                                                                 \
            asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));       \
        asm volatile("{.reg .pred p, q;\n"                                                         \
                     "mbarrier.test_wait.parity.shared::cta.b64 p, [%2], 0;\n"                     \
                     "mbarrier.test_wait.parity.shared::cta.b64 q, [%2], 1;\n"                     \
                     "selp.u32 %0, 1, 0, p;\nselp.u32 %1, 1, 0, q;}"                               \
                     : "=r"(even), "=r"(odd)                                                       \
                     : "r"(bar)                                                                    \
                     : "memory");                                                                  \
        *out++ = pending;                                                                          \
        *out++ = even;                                                                             \
        *out++ = odd;                                                                              \
    }
#define ARRIVE(v)                                                                                  \
    STEP(v, asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;"                           \
                         : "=l"(state)                                                             \
                         : "r"(bar), "r"(value)                                                    \
                         : "memory");)
#define QUIET(form, v)                                                                             \
    STEP(v, asm volatile("mbarrier." form ".shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(value)      \
                         : "memory");)
#define DROP(v)                                                                                    \
    STEP(v, asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1], %2;"                      \
                         : "=l"(state)                                                             \
                         : "r"(bar), "r"(value)                                                    \
                         : "memory");)
#define ARRIVE_EXPECT(v)                                                                           \
    STEP(v, asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"                 \
                         : "=l"(state)                                                             \
                         : "r"(bar), "r"(value)                                                    \
                         : "memory");)
extern "C" __global__ void mbarrier_steps(u32 *out) {
    __shared__ u64 word;
    u32 bar = at(&word);
    QUIET("init", 3)
    ARRIVE(1)
    QUIET("expect_tx.relaxed.cta", 4096)
    ARRIVE(1)
    ARRIVE(1)
    QUIET("complete_tx.relaxed.cta", 4000)
    QUIET("complete_tx.relaxed.cta", 96)
    QUIET("complete_tx.relaxed.cta", 64)
    ARRIVE(2)
    ARRIVE_EXPECT(64)
    DROP(1)
    ARRIVE(2)
    ARRIVE(1)
    ARRIVE(1)
    ARRIVE_EXPECT(1000000)
    QUIET("complete_tx.relaxed.cta", 1000000)
    ARRIVE(1)
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}
// A token of one phase asks whether that phase is over; 32 threads, 64 arrivals.
extern "C" __global__ void mbarrier_tokens(u32 *out) {
    __shared__ u64 word;
    u32 bar = at(&word), t = threadIdx.x, before, after;
    u64 state;
    if (t == 0)
        init(bar, 64);
    __syncthreads();
    asm volatile("mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %0, [%1], 1;"
                 : "=l"(state)
                 : "r"(bar)
                 : "memory");
    __syncthreads();
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
                 "p; }"
                 : "=r"(before)
                 : "r"(bar), "l"(state)
                 : "memory");
    out[t] = before;
    __syncthreads();
    if (t < 2)
        asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 16;" : "=l"(state) : "r"(bar) : "memory");
    __syncthreads();
    asm volatile("{ .reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
                 "p; }"
                 : "=r"(after)
                 : "r"(bar), "l"(state)
                 : "memory");
    out[32 + t] = after;
}
