/* The harness: kernels of our own that run beside a candidate's, in its context. Compiled by the
 * coordinator for the GPU's architecture, loaded by the device process (src/device/harness.c),
 * which knows the launch shapes written here.
 *
 *   scrub            fills what a launch could leave behind in an SM
 *   scrub_local_N    fills the first N bytes of every thread's local memory
 *   hold             keeps the stream busy while the host queues what follows, and counts clocks
 *   fill64           memset of 8-byte elements
 *   noise            random contents for the ceilings
 *   empty … mma_bf16 the ceilings: what this GPU can do at most
 *
 * No headers: plain CUDA C++ and inline PTX. */

typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 mix(u32 x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__device__ __forceinline__ u64 global_ns() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* ---- between launches ---- */

/* Blocks wait for each other: none can finish and give its place to another while a place goes
 * without. *arrived counts blocks for ever, `goal` is what it reaches with this launch. */
__device__ __forceinline__ void wait_for_all(u32 *arrived, u32 goal) {
    u32 seen;
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived));
        while ((int)(seen - goal) < 0);
    }
    __syncthreads();
}

/* One block an SM, by asking for all of an SM's shared memory: shared memory and registers are
 * overwritten. The registers' values come through shared memory that is written again before they
 * are used, so that they have to be kept. words[0] counts arrivals, words[1] is never read. */
__device__ __forceinline__ void fill_shared(uint4 *to, u32 count, u32 pattern) {
    for (u32 i = threadIdx.x; i < count; i += 1024)
        to[i] = {pattern ^ i, pattern + i, ~pattern - i, mix(pattern) ^ i};
}

extern "C" __global__ void __launch_bounds__(1024, 1)
    scrub(u32 pattern, u32 bytes, u32 *words, u32 goal) {
    extern __shared__ uint4 shared[];
    u32 r[40], count = bytes / 16, x = 0;
    fill_shared(shared, count, pattern);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 40; i += 4) {
        uint4 v = shared[(threadIdx.x + i * 256) % count];
        r[i] = v.x, r[i + 1] = v.y, r[i + 2] = v.z, r[i + 3] = v.w;
    }
    __syncthreads();
    fill_shared(shared, count, mix(pattern));
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 40; i++)
        x ^= r[i];
    if (x == 0x9e3779b9u)
        words[1] = x;
    wait_for_all(words, goal);
}

/* Blocks of 512 threads, as many as the SMs hold at once, so that every slot for a thread has one:
 * the slot decides where a thread's local memory lies. A candidate reaches as much of its own as
 * its largest frame, or the stack that the context gives everyone (a call whose depth is not known,
 * alloca, or an index outside its array), whichever is more; N is no less than either. All N bytes
 * are written, since where a slot begins may depend on N. Stores in assembly cannot be left out. */
template <u32 BYTES> __device__ __forceinline__ void fill_frame(u32 seed) {
    __align__(16) char frame[BYTES];
    u32 at = (u32)__cvta_generic_to_local(frame);
#pragma unroll 2
    for (u32 i = 0; i < BYTES; i += 16) {
        seed = seed * 747796405u + 2891336453u;
        asm volatile("st.local.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at + i), "r"(seed), "r"(~seed),
                     "r"(seed ^ i), "r"(seed + i)
                     : "memory");
    }
}

#define SCRUB_LOCAL(bytes)                                                                         \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        scrub_local_##bytes(u32 pattern, u32 *words, u32 goal) {                                   \
        fill_frame<bytes>(mix(pattern ^ mix(blockIdx.x * 512 + threadIdx.x)));                     \
        wait_for_all(words, goal);                                                                 \
    }
SCRUB_LOCAL(256)
SCRUB_LOCAL(512)
SCRUB_LOCAL(1024)
SCRUB_LOCAL(2048)
SCRUB_LOCAL(4096)
SCRUB_LOCAL(8192)
SCRUB_LOCAL(16384)
SCRUB_LOCAL(32768)
SCRUB_LOCAL(65536)
SCRUB_LOCAL(131072)
SCRUB_LOCAL(262144)
SCRUB_LOCAL(524288)

/* One thread. From one tick of the global timer to another, so that cycles over nanoseconds is the
 * clock however coarse the timer. sums: cycles, nanoseconds. */
extern "C" __global__ void hold(u32 ns, u64 *sums) {
    u64 first = global_ns(), begin, end;
    do
        begin = global_ns();
    while (begin == first);
    long long cycles = clock64();
    do
        end = global_ns();
    while (end - begin < ns);
    sums[0] += (u64)(clock64() - cycles);
    sums[1] += end - begin;
}

extern "C" __global__ void fill64(u64 *to, u64 value, u64 count) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = value;
}

/* ---- ceilings: memory ---- */

extern "C" __global__ void empty() {
}

/* Words of which the bits of `random` are noise and those of `ones` are set. */
extern "C" __global__ void noise(u32 *to, u64 count, u32 random, u32 ones) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = (mix((u32)i ^ mix((u32)(i >> 32) + 1)) & random) | ones;
}

/* Blocks of 256 threads, 4 vectors of 16 bytes a thread; counts are multiples of 1024 vectors. */
#define EACH 4

extern "C" __global__ void __launch_bounds__(256) read_all(const uint4 *from, u32 *never) {
    const uint4 *p = from + (u64)blockIdx.x * 256 * EACH + threadIdx.x;
    uint4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                     : "l"(p + i * 256));
    u32 x = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        x |= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    if (x == 0x9e3779b9u) /* keeps the loads; noise hardly ever gives it */
        *never = x;
}

extern "C" __global__ void __launch_bounds__(256) write_all(uint4 *to, u32 value) {
    uint4 *p = to + (u64)blockIdx.x * 256 * EACH + threadIdx.x;
    uint4 v = {mix(value ^ threadIdx.x), mix(value + blockIdx.x), value, ~value};
#pragma unroll
    for (int i = 0; i < EACH; i++)
        p[i * 256] = v;
}

extern "C" __global__ void __launch_bounds__(256) copy_all(uint4 *to, const uint4 *from) {
    u64 at = (u64)blockIdx.x * 256 * EACH + threadIdx.x;
    uint4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i] = __ldcs(from + at + i * 256);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        __stcs(to + at + i * 256, v[i]);
}

/* ---- ceilings: arithmetic ---- */

/* Eight points on circles: two fused multiply-adds turn one on, bounded for ever and never at rest.
 * 16 of them a round; rounds are unrolled by 16. */
extern "C" __global__ void __launch_bounds__(1024) fma_fp32(u32 rounds, float *out) {
    float x[8], y[8];
    u32 seed = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        x[i] = (float)(mix(seed * 8 + i) >> 8) * 0x1p-24f - 0.5f;
        y[i] = (float)(mix(~seed * 8 + i) >> 8) * 0x1p-24f - 0.5f;
    }
    float s = 0.1f + 0x1p-20f * threadIdx.x;
#pragma unroll 16
    for (u32 k = 0; k < rounds; k++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x[i] = fmaf(-s, y[i], x[i]);
            y[i] = fmaf(s, x[i], y[i]);
        }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum += x[i] + y[i];
    out[seed] = sum;
}

/* Matrix products. `from` holds 1 GiB of operands: noise of both signs between 1/2 and 2, which is
 * what a matrix of random numbers looks like to the multipliers. A block's products in `rounds` go
 * to *block_flops. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* The main loop of a product without its edges: two warpgroups, each 64 rows of A by 256 columns of
 * B in registers, operands in shared memory with the 128-byte swizzle, four stages that the copy
 * engine fills again from memory as soon as they were used. Blocks are paired: each brings half of
 * B to both, as the fastest products do, since the L2 could not feed them otherwise. Tensor cores
 * without the copies run a fifth faster than this, and than any product.
 *
 * All data is noise, so a stage may be overwritten while the other warpgroup still reads it, and
 * the partner's half may arrive a round early: only the number of bytes is waited for. */
#define STAGE_A     16384 /* bytes: 128 rows of 128 */
#define STAGE_B     32768 /* 256 rows */
#define STAGE_BYTES (STAGE_A + STAGE_B)
#define STAGES      4
#define CHUNKS      1024 /* stages' worth of memory that a row or column of blocks goes through */

__device__ __forceinline__ u64 descriptor(u32 at) {
    u64 d = (at >> 4) & 0x3fff;
    d |= (u64)1 << 16;  /* not used with a swizzle */
    d |= (u64)64 << 32; /* 1024 bytes from 8 rows to the next 8 */
    return d | (u64)1 << 62;
}

/* The 128 accumulators, in the instruction's text and as its operands. */
#define ALL_D                                                                                      \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "       \
    "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "        \
    "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "        \
    "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "        \
    "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, "        \
    "%87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "          \
    "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, "         \
    "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"
#define D8(i)                                                                                      \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define D64(i)                                                                                     \
    D8(i), D8(i + 8), D8(i + 16), D8(i + 24), D8(i + 32), D8(i + 40), D8(i + 48), D8(i + 56)

__device__ __forceinline__ void wgmma_bf16(float (&d)[128], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " ALL_D
                 ", %128, %129, 1, 1, 1, 0, 0;"
                 : D64(0), D64(64)
                 : "l"(a), "l"(b));
}

__device__ __forceinline__ void wgmma_tf32(float (&d)[128], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 " ALL_D
                 ", %128, %129, 1, 1, 1;"
                 : D64(0), D64(64)
                 : "l"(a), "l"(b));
}

__device__ __forceinline__ u32 cluster_rank() {
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/* One thread: A for this block, this block's half of B for both of the pair. */
__device__ __forceinline__ void refill(const char *from, u32 stage, u32 barrier, u32 k) {
    u32 half = cluster_rank(), at_b = stage + STAGE_A + half * (STAGE_B / 2);
    u64 row = blockIdx.x % 12, column = blockIdx.x / 24; /* of at most 132 blocks: 12 by 6 */
    const char *a = from + (row * CHUNKS + k % CHUNKS) * STAGE_A;
    const char *b = from + (12 * CHUNKS * (u64)STAGE_A) + (column * CHUNKS + k % CHUNKS) * STAGE_B;
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(STAGE_BYTES)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(stage),
                 "l"(a), "r"(STAGE_A), "r"(barrier)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(at_b),
                 "l"(b + half * (STAGE_B / 2)), "r"(STAGE_B / 2), "r"(barrier), "h"((short)3)
                 : "memory");
}

/* The loop is part of the instruction: around a loop of C++ the accumulators would be moved. */
__device__ __forceinline__ void wait_filled(u32 barrier, u32 parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

template <bool BF16>
__device__ __forceinline__ void mma_rounds(u32 rounds, const char *from, float *out) {
    extern __shared__ __align__(1024) char stages[];
    __shared__ u64 barriers[STAGES];
    u32 base = (u32)__cvta_generic_to_shared(stages), group = threadIdx.x / 128;
    u32 filled = (u32)__cvta_generic_to_shared(barriers);
    if (threadIdx.x < STAGES)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(filled + 8 * threadIdx.x));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster_wait();
    for (u32 k = 0; threadIdx.x == 0 && k < STAGES - 1; k++)
        refill(from, base + k * STAGE_BYTES, filled + 8 * k, k);
    float d[128];
#pragma unroll
    for (int i = 0; i < 128; i++)
        d[i] = 0;
    for (u32 k = 0; k < rounds; k++) {
        u32 at = k % STAGES, before = (k + STAGES - 1) % STAGES, stage = base + at * STAGE_BYTES;
        u64 a = descriptor(stage + group * (STAGE_A / 2)), b = descriptor(stage + STAGE_A);
        wait_filled(filled + 8 * at, k / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < 4; i++) { /* 32 bytes of every row each */
            if (BF16)
                wgmma_bf16(d, a + 2 * i, b + 2 * i);
            else
                wgmma_tf32(d, a + 2 * i, b + 2 * i);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (threadIdx.x == 0)
            refill(from, base + before * STAGE_BYTES, filled + 8 * before, k + STAGES - 1);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (u32 k = rounds; k < rounds + STAGES - 1; k++) /* nothing may arrive after the end */
        wait_filled(filled + 8 * (k % STAGES), k / STAGES & 1);
    cluster_wait();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 128; i++)
        sum += d[i];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

/* Of a block in one round: 2 groups, 4 instructions each. */
#define MMA_FLOPS(k) (2ull * 4 * 2 * 64 * 256 * (k))
#define MMA_SHAPE __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1)

#else

/* Eight warps, each with eight tiles of 16 by 8 and operands in registers. On GPUs after Hopper
 * this is less than the tensor cores can do. */
__device__ __forceinline__ void mma_sync_bf16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_sync_tf32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <bool BF16>
__device__ __forceinline__ void mma_rounds(u32 rounds, const char *from, float *out) {
    const u32 *operands = (const u32 *)from + (blockIdx.x * 256 + threadIdx.x) * 16;
    u32 a[2][4], b[4][2];
    float d[8][4] = {};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        a[i / 4][i % 4] = operands[i];
        b[i / 2][i % 2] = operands[8 + i];
    }
    for (u32 k = 0; k < rounds; k++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (BF16)
                mma_sync_bf16(d[i], a[i / 4], b[i % 4]);
            else
                mma_sync_tf32(d[i], a[i / 4], b[i % 4]);
        }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 32; i++)
        sum += d[i / 4][i % 4];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

/* Of a block in one round: 8 warps, 8 instructions each. */
#define MMA_FLOPS(k) (8ull * 8 * 2 * 16 * 8 * (k))
#define MMA_SHAPE __launch_bounds__(256, 2)

#endif

extern "C" __global__ void MMA_SHAPE mma_bf16(u32 rounds, const char *from, float *out,
                                              u64 *block_flops) {
    mma_rounds<true>(rounds, from, out);
    *block_flops = rounds * MMA_FLOPS(16);
}

extern "C" __global__ void MMA_SHAPE mma_tf32(u32 rounds, const char *from, float *out,
                                              u64 *block_flops) {
    mma_rounds<false>(rounds, from, out);
    *block_flops = rounds * MMA_FLOPS(8);
}
