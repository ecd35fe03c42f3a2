// Copies that end later. nvcc -ptx -lineinfo -arch=sm_90a
#include <cuda.h>
#include <cuda_pipeline.h>

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Three stages of cp.async; with STAGES_LEFT too large it reads what has not arrived.
template <int LEFT> __device__ void staged(const float *x, float *y, int n) {
    __shared__ float s[3][128];
    int t = threadIdx.x, tiles = n / 128;
    for (int k = 0; k < 2; k++) {
        if (k < tiles)
            __pipeline_memcpy_async(&s[k][t], &x[k * 128 + t], 4);
        __pipeline_commit();
    }
    for (int k = 0; k < tiles; k++) {
        if (k + 2 < tiles)
            __pipeline_memcpy_async(&s[(k + 2) % 3][t], &x[(k + 2) * 128 + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(LEFT);
        __syncthreads();
        y[k * 128 + t] = s[k % 3][127 - t];
        __syncthreads();
    }
}
extern "C" __global__ void pipeline(const float *x, float *y, int n) { staged<2>(x, y, n); }
extern "C" __global__ void impatient(const float *x, float *y, int n) { staged<3>(x, y, n); }

extern "C" __global__ void zero_fill(const float *x, float *y, int n) {
    __shared__ __align__(16) float s[128];
    int t = threadIdx.x;
    int left = n - 4 * t;
    __pipeline_memcpy_async(&s[4 * t], &x[left > 0 ? 4 * t : 0], 16,
                            left >= 4 ? 0 : 16 - 4 * (left > 0 ? left : 0));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int k = 0; k < 4; k++)
        y[4 * t + k] = s[4 * t + k];
}

__device__ void init(unsigned bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count));
}
__device__ void wait(unsigned bar, int parity) {
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra D;\nbra W;\nD: }" ::"r"(bar),
                 "r"(parity));
}

// A row comes in by a bulk copy, goes out by another.
extern "C" __global__ void rows(const float *x, float *y, int n, int forget) {
    __shared__ __align__(128) float s[256];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        init(at(&bar), 1);
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    for (int k = 0; k < n / 256; k++) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&bar)),
                         "r"(1024));
            if (k != forget)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%0], [%1], %2, [%3];" ::"r"(at(s)),
                             "l"(x + k * 256), "r"(1024), "r"(at(&bar)));
        }
        wait(at(&bar), k & 1);
        s[threadIdx.x] += 1;
        asm volatile("fence.proxy.async.shared::cta;");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                             y + k * 256),
                         "r"(at(s)), "r"(1024));
            asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;");
        }
        __syncthreads();
    }
}

// Tiles by tensor maps, in and out, with a reduction.
extern "C" __global__ void tiles(const __grid_constant__ CUtensorMap in,
                                 const __grid_constant__ CUtensorMap out) {
    __shared__ __align__(1024) float s[8][32];
    __shared__ unsigned long long bar;
    int x = blockIdx.x * 32, y = blockIdx.y * 8;
    if (threadIdx.x == 0) {
        init(at(&bar), 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&bar)),
                     "r"(1024));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
                     "bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(s)),
                     "l"(&in), "r"(x - 4), "r"(y), "r"(at(&bar)));
    }
    __syncthreads();
    wait(at(&bar), 0);
    for (int k = 0; k < 8; k++)
        s[k][threadIdx.x] *= 2;
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                     "[%0, {%1, %2}], [%3];" ::"l"(&out),
                     "r"(x), "r"(y), "r"(at(s)));
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;");
    }
}

// One block of the cluster loads for all of them.
extern "C" __global__ void __cluster_dims__(4, 1, 1) multicast(const float *x, float *y) {
    __shared__ __align__(128) float s[64];
    __shared__ unsigned long long bar;
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        init(at(&bar), 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&bar)),
                     "r"(256));
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;");
    if (rank == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
                     "cluster [%0], [%1], %2, [%3], %4;" ::"r"(at(s)),
                     "l"(x), "r"(256), "r"(at(&bar)), "h"((unsigned short)0xf));
    wait(at(&bar), 0);
    y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x] + rank;
}

// Producer and consumer warps, two stages, full and empty barriers; cp.async arrives on them.
extern "C" __global__ void specialised(const float *x, float *y, int n) {
    __shared__ float s[2][32];
    __shared__ unsigned long long full[2], empty[2];
    int t = threadIdx.x;
    if (t == 0)
        for (int k = 0; k < 2; k++)
            init(at(&full[k]), 32), init(at(&empty[k]), 32);
    __syncthreads();
    if (t < 32) {
        for (int k = 0; k < n / 32; k++) {
            wait(at(&empty[k % 2]), (k / 2 + 1) & 1);
            __pipeline_memcpy_async(&s[k % 2][t], &x[k * 32 + t], 4);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                at(&full[k % 2])));
        }
    } else {
        for (int k = 0; k < n / 32; k++) {
            wait(at(&full[k % 2]), k / 2 & 1);
            y[k * 32 + t - 32] = s[k % 2][63 - t];
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&empty[k % 2])));
        }
    }
}
