// Planted bugs: warps and lanes of one block. See bugs.cuh; nvcc -ptx -lineinfo -arch=sm_90a
#include "bugs.cuh"
#include <cassert>

BODY(no_barrier) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // PARTY
    if (!BUG)
        __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
}
KERNELS(no_barrier)

// The second barrier of a loop is missing: the next round overwrites what others still read.
BODY(one_barrier) {
    __shared__ int s[64];
    int sum = 0;
    for (int k = 0; k < 4; k++) {
        s[threadIdx.x] = x[threadIdx.x] + k; // BUG: race
        __syncthreads();
        sum += s[63 - threadIdx.x]; // PARTY
        if (!BUG)
            __syncthreads();
    }
    y[threadIdx.x] = sum;
}
KERNELS(one_barrier)

// A pipeline that writes two stages ahead needs three of them.
BODY(stage_reuse) {
    constexpr int stages = BUG ? 2 : 3;
    __shared__ int s[stages][64];
    int sum = 0;
    s[0][threadIdx.x] = x[threadIdx.x];
    s[1][threadIdx.x] = x[threadIdx.x] + 1;
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        __syncthreads();
        sum += s[k % stages][63 - threadIdx.x];                   // PARTY
        s[(k + 2) % stages][threadIdx.x] = x[threadIdx.x] + k + 2; // BUG: race
    }
    y[threadIdx.x] = sum;
}
KERNELS(stage_reuse)

BODY(no_syncwarp) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // PARTY
    if (!BUG)
        __syncwarp();
    y[threadIdx.x] = s[threadIdx.x ^ 1]; // BUG: race
}
KERNELS(no_syncwarp)

// The last steps of a reduction as they were written for lanes in lockstep.
BODY(volatile_lanes) {
    __shared__ volatile int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // PARTY
    if (!BUG)
        __syncwarp();
    int v = s[threadIdx.x ^ 16]; // BUG: race
    y[threadIdx.x] = v;
}
KERNELS(volatile_lanes)

// Lanes that take turns by a lock; without fences it guards nothing.
BODY(lock_of_lanes) {
    __shared__ int lock, sum;
    if (threadIdx.x == 0)
        lock = sum = 0;
    __syncthreads();
    for (bool waits = true; waits;)
        if (atomicCAS(&lock, 0, 1) == 0) {
            if (!BUG)
                __threadfence_block();
            sum += x[threadIdx.x]; // BUG: race // PARTY
            if (!BUG)
                __threadfence_block();
            atomicExch(&lock, 0);
            waits = false;
        }
    __syncthreads();
    y[threadIdx.x] = sum;
}
KERNELS(lock_of_lanes)

// A shuffle brings lanes together and orders nothing in memory.
BODY(shuffle_orders) {
    __shared__ int s[32];
    s[threadIdx.x] = x[threadIdx.x]; // PARTY
    int v = __shfl_xor_sync(~0u, x[threadIdx.x], 1);
    if (!BUG)
        __syncwarp();
    y[threadIdx.x] = s[threadIdx.x ^ 1] + v; // BUG: race
}
KERNELS(shuffle_orders)

BODY(wrong_name) {
    __shared__ int s[64];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = x[threadIdx.x]; // PARTY
        BAR("bar.arrive", 1, 64);
        BAR("bar.sync", 2, 64);
    } else {
        if (!BUG)
            BAR("bar.sync", 1, 64);
        y[threadIdx.x] = s[threadIdx.x - 32]; // BUG: race
        BAR("bar.arrive", 2, 64);
    }
    y[threadIdx.x & 31] = 1;
}
KERNELS(wrong_name)

// With a count of 32 each warp opens the barrier for itself.
BODY(short_count) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // PARTY
    BAR("bar.sync", 1, BUG ? 32 : 64);
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
}
KERNELS(short_count)

BODY(broadcast) {
    __shared__ int s;
    if (threadIdx.x == 0)
        s = x[0]; // PARTY
    if (!BUG)
        __syncthreads();
    y[threadIdx.x] = s; // BUG: race
}
KERNELS(broadcast)

BODY(plain_histogram) {
    __shared__ int s[8];
    if (threadIdx.x < 8)
        s[threadIdx.x] = 0;
    __syncthreads();
    if (BUG)
        s[x[threadIdx.x] & 7] += 1; // BUG: race
    else
        atomicAdd(&s[x[threadIdx.x] & 7], 1);
    __syncthreads();
    if (threadIdx.x < 8)
        y[threadIdx.x] = s[threadIdx.x];
}
KERNELS(plain_histogram)

// A plain store among atomics.
BODY(plain_reset) {
    __shared__ int s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    atomicAdd(&s, 1); // PARTY
    if (!BUG)
        __syncthreads();
    if (threadIdx.x == 0)
        s = 0; // BUG: race
    __syncthreads();
    y[threadIdx.x] = s;
}
KERNELS(plain_reset)

BODY(half_warp) {
    if (BUG) {
        if (threadIdx.x % 32 < 16) {
            asm volatile("bar.sync 0;" ::: "memory"); // BUG: sync
            y[threadIdx.x] = 2;
        } else {
            asm volatile("bar.sync 0;" ::: "memory"); // PARTY
            y[threadIdx.x] = 3;
        }
    } else {
        __syncthreads();
    }
    x[threadIdx.x] = 1;
}
KERNELS(half_warp)

BODY(barrier_in_branch) {
    if (!BUG || threadIdx.x < 48) {
        asm volatile("bar.sync 0;" ::: "memory"); // BUG: sync
        y[threadIdx.x] = 2;
    }
}
KERNELS(barrier_in_branch)

BODY(counts_differ) {
    if (threadIdx.x < 32)
        BAR("bar.sync", 1, 64); // PARTY
    else
        BAR("bar.sync", 1, BUG ? 32 : 64); // BUG: sync
    y[threadIdx.x] = 1;
}
KERNELS(counts_differ)

BODY(odd_count) {
    BAR("bar.sync", 1, BUG ? 48 : 64); // BUG: sync
    y[threadIdx.x] = 1;
}
KERNELS(odd_count)

// A warp goes round once more than the other, which is gone by then.
BODY(uneven_loop) {
    int rounds = BUG && threadIdx.x < 32 ? 3 : 2;
#pragma unroll 1
    for (int i = 0; i < rounds; i++)
        BAR("bar.sync", 1, 64); // BUG: stuck
    y[threadIdx.x] = 1;
}
KERNELS(uneven_loop)

BODY(crossed) {
    if (threadIdx.x < 32) {
        BAR("bar.sync", 1, 64); // BUG: stuck
        BAR("bar.sync", 2, 64);
    } else if (BUG) {
        BAR("bar.sync", 2, 64); // PARTY
        BAR("bar.sync", 1, 64);
    } else {
        BAR("bar.sync", 1, 64);
        BAR("bar.sync", 2, 64);
    }
    y[threadIdx.x] = 1;
}
KERNELS(crossed)

BODY(shuffle_from_idle) {
    int v = x[threadIdx.x];
    if (threadIdx.x < 16) {
        v = __shfl_sync(0xffff, v, threadIdx.x + (BUG ? 16 : 0)); // BUG: sync
        y[threadIdx.x] = v;
    }
}
KERNELS(shuffle_from_idle)

BODY(shuffle_from_gone) {
    int v = x[threadIdx.x];
    if (BUG && threadIdx.x >= 16)
        return;
    y[threadIdx.x] = __shfl_xor_sync(~0u, v, 16); // BUG: sync
}
KERNELS(shuffle_from_gone)

BODY(unnamed_lanes) {
    unsigned all = BUG ? 0xffff : 0xffffffff;
    y[threadIdx.x] = __ballot_sync(all, x[threadIdx.x] & 1); // BUG: sync
}
KERNELS(unnamed_lanes)

// Half of the lanes wait for the others, who wait elsewhere.
BODY(split_warp) {
    int v = x[threadIdx.x];
    if (threadIdx.x < 16)
        v = __shfl_sync(BUG ? ~0u : 0xffffu, v, 0); // BUG: stuck
    else
        v = __shfl_sync(BUG ? ~0u : 0xffff0000u, v, 17) + 1; // PARTY
    y[threadIdx.x] = v;
}
KERNELS(split_warp)

BODY(traps) {
    if (BUG && x[threadIdx.x])
        __trap(); // BUG: trap
    y[threadIdx.x] = 1;
}
KERNELS(traps)

BODY(asserts) {
    assert(!BUG || x[threadIdx.x] == 0); // BUG: trap
    y[threadIdx.x] = 1;
}
KERNELS(asserts)

BODY(endless) {
    int i = x[threadIdx.x];
#pragma unroll 1
    while (i)
        asm volatile("mul.lo.s32 %0, %0, %1;" : "+r"(i) : "r"(BUG ? 3 : 2)); // BUG: budget
    y[threadIdx.x] = i;
}
KERNELS(endless)
