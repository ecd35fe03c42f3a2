// Planted bugs, and the same kernels without them (template argument false). A line that a finding
// has to name ends in a comment with its kernel's name. nvcc -ptx -lineinfo -arch=sm_90a
#include <cuda_pipeline.h>

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(unsigned bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ void wait(unsigned bar, int parity) {
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra D;\nbra W;\nD: }" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}
#define STORE(s, y)                                                                                \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y), "r"(s)   \
                 : "memory")
#define LOAD(s, x, bar)                                                                            \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "  \
                 "256, [%2];" ::"r"(s),                                                            \
                 "l"(x), "r"(bar)                                                                  \
                 : "memory")
#define KERNELS(name)                                                                              \
    extern "C" __global__ void name(int *x, int *y) { name##_body<true>(x, y); }                   \
    extern "C" __global__ void name##_right(int *x, int *y) { name##_body<false>(x, y); }

template <bool BUG> __device__ void no_barrier_body(int *x, int *y) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // no_barrier.other
    if (!BUG)
        __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // no_barrier.here
}
KERNELS(no_barrier)

// The second barrier of a loop is missing: the next round overwrites what others still read.
template <bool BUG> __device__ void one_barrier_body(int *x, int *y) {
    __shared__ int s[64];
    int sum = 0;
    for (int k = 0; k < 4; k++) {
        s[threadIdx.x] = x[threadIdx.x] + k; // one_barrier.here
        __syncthreads();
        sum += s[63 - threadIdx.x]; // one_barrier.other
        if (!BUG)
            __syncthreads();
    }
    y[threadIdx.x] = sum;
}
KERNELS(one_barrier)

template <bool BUG> __device__ void no_syncwarp_body(int *x, int *y) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // no_syncwarp.other
    if (!BUG)
        __syncwarp();
    y[threadIdx.x] = s[threadIdx.x ^ 1]; // no_syncwarp.here
}
KERNELS(no_syncwarp)

template <bool BUG> __device__ void wrong_name_body(int *x, int *y) {
    __shared__ int s[64];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = x[threadIdx.x]; // wrong_name.other
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
        if (!BUG)
            asm volatile("bar.sync 1, 64;" ::: "memory");
        y[threadIdx.x] = s[threadIdx.x - 32]; // wrong_name.here
        asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
    y[threadIdx.x & 31] = 1;
}
KERNELS(wrong_name)

// Two blocks add to one word without an atomic.
template <bool BUG> __device__ void two_blocks_body(int *x, int *y) {
    if (BUG)
        y[0] = y[0] + 1; // two_blocks.here
    else
        atomicAdd(y, 1);
}
KERNELS(two_blocks)

// The flag is there, the fence is not: the second block may see the flag before the data.
template <bool BUG> __device__ void no_fence_body(int *x, int *y) {
    volatile int *flag = y + 63;
    if (blockIdx.x == 0) {
        y[threadIdx.x] = x[threadIdx.x]; // no_fence.other
        __syncthreads();
        if (threadIdx.x == 0) {
            if (!BUG)
                __threadfence();
            *flag = 1;
        }
    } else if (blockIdx.x == 1) {
        if (threadIdx.x == 0)
            while (*flag == 0)
                ;
        __syncthreads();
        x[threadIdx.x + 32] = y[31 - threadIdx.x]; // no_fence.here
    }
}
KERNELS(no_fence)

// A fence by one thread alone does not publish what its neighbours wrote.
template <bool BUG> __device__ void lonely_fence_body(int *x, int *y) {
    if (blockIdx.x == 0) {
        y[threadIdx.x + 1] = x[threadIdx.x]; // lonely_fence.other
        if (!BUG)
            __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(y, 1);
        }
    } else if (blockIdx.x == 1) {
        if (threadIdx.x == 0)
            while (atomicAdd(y, 0) == 0)
                ;
        __syncthreads();
        x[threadIdx.x] = y[64 - threadIdx.x]; // lonely_fence.here
    }
}
KERNELS(lonely_fence)

template <bool BUG> __device__ void no_wait_body(int *x, int *y) {
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    if (!BUG)
        __pipeline_wait_prior(0);
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // no_wait.here
    __pipeline_wait_prior(0);
}
KERNELS(no_wait)

template <bool BUG> __device__ void unwritten_body(int *x, int *y) {
    __shared__ int s[64];
    if (!BUG || threadIdx.x < 63)
        s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // unwritten.here
}
KERNELS(unwritten)

template <bool BUG> __device__ void unwritten_global_body(int *x, int *y) {
    if (!BUG)
        y[threadIdx.x] = 1;
    x[threadIdx.x] = y[threadIdx.x]; // unwritten_global.here
}
KERNELS(unwritten_global)

template <bool BUG> __device__ void unwritten_local_body(int *x, int *y) {
    volatile int a[8];
    for (int i = BUG ? 1 : 0; i < 8; i++)
        a[i] = x[i];
    y[threadIdx.x] = a[threadIdx.x & 7]; // unwritten_local.here
}
KERNELS(unwritten_local)

template <bool BUG> __device__ void half_warp_body(int *x, int *y) {
    if (BUG) {
        if (threadIdx.x % 32 < 16) {
            asm volatile("bar.sync 0;" ::: "memory"); // half_warp.here
            y[threadIdx.x] = 2;
        } else {
            asm volatile("bar.sync 0;" ::: "memory"); // half_warp.here2
            y[threadIdx.x] = 3;
        }
    } else {
        __syncthreads();
    }
    x[threadIdx.x] = 1;
}
KERNELS(half_warp)

// What a bulk copy reads was written by threads: the async proxy needs its own fence.
template <bool BUG> __device__ void no_proxy_body(int *x, int *y) {
    __shared__ __align__(16) int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // no_proxy.other
    if (!BUG)
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE(at(s), y); // no_proxy.here
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}
KERNELS(no_proxy)

// A bulk copy comes in while others still read the buffer.
template <bool BUG> __device__ void early_copy_body(int *x, int *y) {
    __shared__ __align__(16) int s[64];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0)
        init(at(&bar), 1);
    __syncthreads();
    for (int k = 0; k < 2; k++) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&bar))
                         : "memory");
            LOAD(at(s), x, at(&bar)); // early_copy.here
        }
        wait(at(&bar), k);
        y[threadIdx.x] = s[63 - threadIdx.x]; // early_copy.other
        if (!BUG)
            __syncthreads();
    }
}
KERNELS(early_copy)

template <bool BUG> __device__ void no_copy_body(int *x, int *y) {
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        init(at(&bar), 1);
        if (BUG)
            asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(at(&bar))
                         : "memory");
    }
    y[threadIdx.x] = 1;
}
KERNELS(no_copy)

template <bool BUG> __device__ void left_behind_body(int *x, int *y) {
    __shared__ __align__(16) int s[64];
    s[threadIdx.x] = 5;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE(at(s), y); // left_behind.here
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (!BUG)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
KERNELS(left_behind)
