// Blocks, warps and lanes that wait for each other. Compiled: nvcc -ptx -lineinfo -arch=sm_90a
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void histogram(const unsigned *x, unsigned *bins, int n) {
    __shared__ unsigned s[32];
    if (threadIdx.x < 32)
        s[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&s[x[i] & 31], 1u);
    __syncthreads();
    if (threadIdx.x < 32)
        atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

extern "C" __global__ void float_sum(const float *x, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(sum, x[i]);
}

// One launch: partial sums, and the block that comes last adds them up.
extern "C" __global__ void last_block(const float *x, float *part, unsigned *count, float *out,
                                      int n) {
    __shared__ float s[128];
    __shared__ bool last;
    int i = blockIdx.x * 128 + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (threadIdx.x < k)
            s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        part[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        float sum = 0;
        for (int b = 0; b < gridDim.x; b++)
            sum += part[b];
        *out = sum;
    }
}

// Decoupled look-back: the inclusive prefix of each block's number + 1.
extern "C" __global__ void look_back(volatile int *state, int *out) {
    __shared__ int before;
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        int own = b + 1, sum = 0;
        if (b == 0) {
            state[0] = 2 | own << 2;
        } else {
            state[b] = 1 | own << 2;
            for (int k = b - 1;;) {
                int s = state[k];
                if (s == 0)
                    continue;
                sum += s >> 2;
                if (s & 2)
                    break;
                k--;
            }
            state[b] = 2 | (sum + own) << 2;
        }
        before = sum;
    }
    __syncthreads();
    out[b * blockDim.x + threadIdx.x] = before;
}

// Every block waits for the next one: no order of starting can be relied on.
extern "C" __global__ void look_ahead(volatile int *state, int *out) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        if (b + 1 < gridDim.x)
            while (state[b + 1] == 0)
                ;
        state[b] = 1;
    }
    __syncthreads();
    out[b * blockDim.x + threadIdx.x] = b;
}

__device__ void grid_barrier(unsigned *count, unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (*(volatile unsigned *)count < round * gridDim.x)
            ;
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void stages(unsigned *count, float *a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    a[i] = i;
    grid_barrier(count, 1);
    b[i] = a[n - 1 - i] + 1;
    grid_barrier(count, 2);
    a[i] = b[(i + 1) % n];
}

// Each lane takes a lock in turn, within one warp.
extern "C" __global__ void locked(int *lock, int *value) {
    bool done = false;
    while (!done)
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int *)value += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
}

// A flag that nobody sets.
extern "C" __global__ void forgotten(volatile int *flag, int *out) {
    while (flag[1] == 0)
        ;
    out[threadIdx.x] = 1;
}

// Two producer warps, two consumer warps, two named barriers.
extern "C" __global__ void named(int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        if (t < 64) {
            asm volatile("bar.sync 2, 128;");
            s[t] = k * 100 + t;
            asm volatile("bar.arrive 1, 128;");
        } else {
            asm volatile("bar.arrive 2, 128;");
            asm volatile("bar.sync 1, 128;");
            out[k * 64 + t - 64] = s[127 - t];
        }
    }
}

extern "C" __global__ void lanes(unsigned *out) {
    unsigned t = threadIdx.x, v = t / 4;
    unsigned any = __match_any_sync(~0u, v), leader = 0;
    int all;
    unsigned same = __match_all_sync(~0u, 7, &all);
    unsigned long long wide = __match_any_sync(~0u, (unsigned long long)(t % 2) << 40);
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
                 : "=r"(leader));
    long long before = clock64();
    __nanosleep(100);
    out[t] = any;
    out[32 + t] = same + all;
    out[64 + t] = (unsigned)wide;
    out[96 + t] = leader;
    out[128 + t] = clock64() > before;
}

// The sum of a cluster's first elements, through the other blocks' shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) neighbours(const int *x, int *out) {
    __shared__ int s[32];
    cg::cluster_group c = cg::this_cluster();
    s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    c.sync();
    int sum = 0;
    for (unsigned r = 0; r < c.num_blocks(); r++)
        sum += c.map_shared_rank(s, r)[threadIdx.x];
    c.sync();
    atomicAdd(c.map_shared_rank(&s[0], 0), 1);
    c.sync();
    out[blockIdx.x * 32 + threadIdx.x] = sum * 10 + c.block_rank();
}
