// Planted bugs: wgmma and setmaxnreg. See bugs.cuh; nvcc -ptx -lineinfo -arch=sm_90a
#include "bugs.cuh"
#include <cuda_fp16.h>

// A of 64 x 16 and B of 8 x 16 halves, in cores of 8 x 8 one after the other.
struct tiles {
    __half a[64 * 16], b[8 * 16];
};
__device__ __forceinline__ unsigned long long descriptor(const void *p) {
    return at(p) >> 4 | 8ull << 16 | 16ull << 32;
}
__device__ __forceinline__ void fill(tiles &t, const int *x) {
    for (unsigned i = threadIdx.x; i < sizeof t / 4; i += blockDim.x)
        ((int *)&t)[i] = x[i % 256];
}
#define WGMMA(d, a, b)                                                                             \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"                                         \
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, " \
                 "1, 1, 0, 0; }"                                                                   \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "l"(a), "l"(b), "r"(1)                                                          \
                 : "memory")
#define WGMMA_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WGMMA_WAIT() asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory")
#define READY(t)                                                                                   \
    fill(t, x);                                                                                    \
    FENCE_PROXY();                                                                                 \
    __syncthreads()

BODY(sums_early) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // PARTY
    WGMMA_COMMIT();
    if (!BUG)
        WGMMA_WAIT();
    asm volatile("st.global.f32 [%0], %1;" ::"l"(y + threadIdx.x), "f"(d[0]) : "memory"); // BUG: race
    WGMMA_WAIT();
}
KERNELS(sums_early)

// Without its commit the product is in no group.
BODY(no_wgmma_commit) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // PARTY
    if (!BUG)
        WGMMA_COMMIT();
    WGMMA_WAIT();
    asm volatile("st.global.f32 [%0], %1;" ::"l"(y + threadIdx.x), "f"(d[0]) : "memory"); // BUG: race
    WGMMA_COMMIT();
    WGMMA_WAIT();
}
KERNELS(no_wgmma_commit)

BODY(no_wgmma_fence) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    if (!BUG)
        WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // BUG: race
    WGMMA_COMMIT();
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(no_wgmma_fence)

// The sums are scaled between two products.
BODY(scaled_unfenced) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b));
    WGMMA_COMMIT();
    WGMMA_WAIT();
    asm volatile("mul.f32 %0, %0, 0f40000000;" : "+f"(d[0])); // PARTY
    if (!BUG)
        WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // BUG: race
    WGMMA_COMMIT();
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(scaled_unfenced)

// A tile is written while the product may still read it.
BODY(tile_overwritten) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // BUG: race
    WGMMA_COMMIT();
    if (!BUG) {
        WGMMA_WAIT();
        __syncthreads();
    }
    t.b[threadIdx.x] = __float2half(3); // PARTY
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(tile_overwritten)

BODY(tile_no_barrier) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    for (unsigned i = threadIdx.x; i < sizeof t / 4; i += blockDim.x)
        ((int *)&t)[i] = x[i % 256]; // PARTY
    FENCE_PROXY();
    if (!BUG)
        __syncthreads();
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // BUG: race
    WGMMA_COMMIT();
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(tile_no_barrier)

BODY(tile_no_proxy) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    for (unsigned i = threadIdx.x; i < sizeof t / 4; i += blockDim.x)
        ((int *)&t)[i] = x[i % 256]; // PARTY
    if (!BUG)
        FENCE_PROXY();
    __syncthreads();
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // BUG: race
    WGMMA_COMMIT();
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(tile_no_proxy)

BODY(product_left) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(t.b)); // BUG: sync
    WGMMA_COMMIT();
    if (!BUG)
        WGMMA_WAIT();
    y[threadIdx.x] = 1;
}
KERNELS(product_left)

// The four warps multiply together, from one descriptor.
BODY(own_descriptors) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    WGMMA_FENCE();
    WGMMA(d, descriptor(BUG ? t.a + 64 * (threadIdx.x / 32) : t.a), descriptor(t.b)); // BUG: trap
    WGMMA_COMMIT();
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(own_descriptors)

// The base offset is not that of the address: line 1 of eight.
BODY(swizzle_off) {
    __shared__ __align__(1024) __half s[12 * 1024];
    float d[4] = {};
    for (unsigned i = threadIdx.x; i < sizeof s / 4; i += blockDim.x)
        ((int *)s)[i] = x[i % 256];
    FENCE_PROXY();
    __syncthreads();
    unsigned long long swizzled = 1ull << 16 | 64ull << 32 | 1ull << 62;
    unsigned long long base = BUG ? 2ull << 49 : 1ull << 49;
    WGMMA_FENCE();
    WGMMA(d, at(s) >> 4 | swizzled, at(s + 4096 + 64) >> 4 | swizzled | base); // BUG: sync
    WGMMA_COMMIT();
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(swizzle_off)

BODY(tile_past_end) {
    __shared__ __align__(128) tiles t;
    float d[4] = {};
    READY(t);
    WGMMA_FENCE();
    WGMMA(d, descriptor(t.a), descriptor(BUG ? t.b + 64 : t.b)); // BUG: bounds
    WGMMA_COMMIT();
    WGMMA_WAIT();
    y[threadIdx.x] = (int)d[0];
}
KERNELS(tile_past_end)

// Three warps of four.
BODY(part_of_group) {
    if (!BUG || threadIdx.x < 96)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 64;" ::: "memory"); // BUG: sync
    y[threadIdx.x] = 1;
}
KERNELS(part_of_group)

// 512 threads with 240 registers each are more than an SM has.
BODY(too_many_registers) {
    if (BUG || threadIdx.x < 128)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;" ::: "memory"); // BUG: sync
    else
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");
    y[threadIdx.x] = 1;
}
KERNELS(too_many_registers)
