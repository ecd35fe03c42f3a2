// Planted bugs: blocks of a grid and of a cluster. See bugs.cuh; nvcc -ptx -lineinfo -arch=sm_90a
#include "bugs.cuh"

// Two blocks add to one word without an atomic.
BODY(two_blocks) {
    if (BUG)
        y[0] = y[0] + 1; // BUG: race
    else
        atomicAdd(y, 1);
}
KERNELS(two_blocks)

BODY(no_flag) {
    if (blockIdx.x == 0)
        y[threadIdx.x] = x[threadIdx.x] + 1; // PARTY
    else
        y[threadIdx.x + 32] = BUG ? y[threadIdx.x] : x[threadIdx.x]; // BUG: race
}
KERNELS(no_flag)

// Tiles of 64 at every 32nd element.
BODY(overlap) {
    y[blockIdx.x * (BUG ? 32 : 64) + threadIdx.x] = x[threadIdx.x] + blockIdx.x; // BUG: race
}
KERNELS(overlap)

// The flag is there, the fence is not: the second block may see the flag before the data.
BODY(no_fence) {
    volatile int *flag = y + 63;
    if (blockIdx.x == 0) {
        y[threadIdx.x] = x[threadIdx.x]; // PARTY
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
        x[threadIdx.x + 32] = y[31 - threadIdx.x]; // BUG: race
    }
}
KERNELS(no_fence)

// A fence of the block says nothing to other blocks.
BODY(narrow_fence) {
    volatile int *flag = y + 63;
    if (blockIdx.x == 0) {
        y[threadIdx.x] = x[threadIdx.x]; // PARTY
        __syncthreads();
        if (BUG)
            __threadfence_block();
        else
            __threadfence();
        if (threadIdx.x == 0)
            *flag = 1;
    } else if (blockIdx.x == 1) {
        if (threadIdx.x == 0)
            while (*flag == 0)
                ;
        __syncthreads();
        x[threadIdx.x + 32] = y[31 - threadIdx.x]; // BUG: race
    }
}
KERNELS(narrow_fence)

// A fence by one thread alone does not publish what its neighbours wrote.
BODY(lonely_fence) {
    if (blockIdx.x == 0) {
        y[threadIdx.x + 1] = x[threadIdx.x]; // PARTY
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
        x[threadIdx.x] = y[64 - threadIdx.x]; // BUG: race
    }
}
KERNELS(lonely_fence)

// What is written after the flag is not published by it.
BODY(late_data) {
    volatile int *flag = y + 63;
    if (blockIdx.x == 0) {
        if (!BUG)
            y[0] = x[0] + 5;
        __threadfence();
        *flag = 1;
        if (BUG)
            y[0] = x[0] + 5; // BUG: race
    } else {
        while (*flag == 0)
            ;
        x[32] = y[0]; // PARTY
    }
}
KERNELS(late_data)

// The last block to come adds up what the others wrote, without their fence.
BODY(last_block) {
    __shared__ bool last;
    y[1 + blockIdx.x * 32 + threadIdx.x] = x[threadIdx.x] + blockIdx.x; // PARTY
    if (!BUG)
        __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(y, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        int sum = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            sum += y[1 + b * 32 + threadIdx.x]; // BUG: race
        x[threadIdx.x + 32] = sum;
    }
}
KERNELS(last_block)

BODY(plain_and_atomic) {
    if (blockIdx.x == 0)
        atomicAdd(y, 1); // PARTY
    else if (BUG)
        y[0] = 7; // BUG: race
    else
        atomicExch(y, 7);
}
KERNELS(plain_and_atomic)

// Atomic for the threads of one block, used by two.
BODY(block_atomic) {
    if (BUG)
        atomicAdd_block(y, 1); // BUG: race
    else
        atomicAdd(y, 1);
}
KERNELS(block_atomic)

BODY(in_block) {
    y[threadIdx.x] = x[threadIdx.x]; // PARTY
    if (!BUG)
        __syncthreads();
    x[threadIdx.x + 64] = y[63 - threadIdx.x]; // BUG: race
}
KERNELS(in_block)

// The read-only path may hold what was there before.
BODY(stale_cache) {
    y[threadIdx.x] = x[threadIdx.x] + 1; // PARTY
    __syncthreads();
    x[threadIdx.x + 64] = BUG ? __ldg(&y[63 - threadIdx.x]) : y[63 - threadIdx.x]; // BUG: race
}
KERNELS(stale_cache)

// The lock is given back before the work under it is done.
BODY(unlocked_early) {
    while (atomicCAS(y, 0, 1) != 0)
        ;
    __threadfence();
    if (BUG) {
        atomicExch(y, 0);
        y[1] = y[1] + 1 + blockIdx.x; // BUG: race
    } else {
        y[1] = y[1] + 1 + blockIdx.x;
        __threadfence();
        atomicExch(y, 0);
    }
}
KERNELS(unlocked_early)

BODY(lock_kept) {
    while (atomicCAS(y, 0, 1) != 0) // BUG: stuck
        ;
    __threadfence();
    y[1] = y[1] + 1;
    __threadfence();
    if (!BUG)
        atomicExch(y, 0);
}
KERNELS(lock_kept)

BODY(nobody_sets) {
    volatile int *flag = y;
    if (blockIdx.x == 0 && !BUG)
        *flag = 1;
    if (blockIdx.x == 1)
        while (*flag == 0) // BUG: stuck
            ;
}
KERNELS(nobody_sets)

// A block of the cluster is read before it has written.
BODY(peer_early) {
    __shared__ int s[32];
    unsigned v;
    s[threadIdx.x] = x[threadIdx.x] + cluster_rank(); // PARTY
    if (!BUG) {
        CLUSTER_ARRIVE();
        CLUSTER_WAIT();
    }
    READ_PEER(v, map_to(at(&s[threadIdx.x]), cluster_rank() ^ 1)); // BUG: race
    y[blockIdx.x * 32 + threadIdx.x] = v;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
KERNELS(peer_early)

// A relaxed arrival publishes what a fence before it covers, and nothing else.
BODY(relaxed_arrival) {
    __shared__ int s[32];
    unsigned v;
    s[threadIdx.x] = x[threadIdx.x] + cluster_rank(); // PARTY
    if (!BUG)
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    CLUSTER_WAIT();
    READ_PEER(v, map_to(at(&s[threadIdx.x]), cluster_rank() ^ 1)); // BUG: race
    y[blockIdx.x * 32 + threadIdx.x] = v;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
KERNELS(relaxed_arrival)

// The block that is read may have ended.
BODY(peer_gone) {
    __shared__ int s[32];
    unsigned v;
    s[threadIdx.x] = x[threadIdx.x] + cluster_rank();
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    READ_PEER(v, map_to(at(&s[threadIdx.x]), cluster_rank() ^ 1)); // BUG: sync
    y[blockIdx.x * 32 + threadIdx.x] = v;
    if (!BUG) {
        CLUSTER_ARRIVE();
        CLUSTER_WAIT();
    }
}
KERNELS(peer_gone)

// A plain read may be old: good enough to begin a compare-and-swap with, and for nothing else.
BODY(plain_guess) {
    int old = *y, seen; // BUG: race
    if (BUG)
        atomicAdd(y, old > 1000 ? 2 : 1); // PARTY
    else
        do {
            seen = old;
            old = atomicCAS(y, seen, seen > 1000 ? seen + 2 : seen + 1);
        } while (old != seen);
}
KERNELS(plain_guess)

BODY(no_such_peer) {
    __shared__ int s[32];
    unsigned v;
    s[threadIdx.x] = x[threadIdx.x];
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    READ_PEER(v, map_to(at(&s[threadIdx.x]), BUG ? 2 : 1)); // BUG: bounds
    y[blockIdx.x * 32 + threadIdx.x] = v;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
KERNELS(no_such_peer)

// One block waits at the cluster's barrier and has not arrived.
BODY(cluster_missed) {
    if (cluster_rank() == 0) {
        CLUSTER_ARRIVE();
        CLUSTER_WAIT(); // BUG: stuck
    } else {
        if (!BUG)
            CLUSTER_ARRIVE();
        CLUSTER_WAIT(); // PARTY
    }
    y[blockIdx.x * 32 + threadIdx.x] = 1;
}
KERNELS(cluster_missed)
