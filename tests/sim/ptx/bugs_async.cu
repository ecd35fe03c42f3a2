// Planted bugs: copies that end later, and the mbarriers they end on. See bugs.cuh;
// nvcc -ptx -lineinfo -arch=sm_90a
#include "bugs.cuh"

BODY(no_wait) {
    __shared__ int s[64];
    COPY4(&s[threadIdx.x], &x[threadIdx.x]); // PARTY
    COMMIT();
    if (!BUG)
        WAIT_GROUPS(0);
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
    WAIT_GROUPS(0);
}
KERNELS(no_wait)

// What is not committed belongs to no group that could be waited for.
BODY(no_commit) {
    __shared__ int s[64];
    COPY4(&s[threadIdx.x], &x[threadIdx.x]); // PARTY
    if (!BUG)
        COMMIT();
    WAIT_GROUPS(0);
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
    COMMIT();
    WAIT_GROUPS(0);
}
KERNELS(no_commit)

BODY(one_group_too_few) {
    __shared__ int s[2][64];
    COPY4(&s[0][threadIdx.x], &x[threadIdx.x]);
    COMMIT();
    COPY4(&s[1][threadIdx.x], &x[threadIdx.x + 64]); // PARTY
    COMMIT();
    WAIT_GROUPS(BUG ? 1 : 0);
    __syncthreads();
    y[threadIdx.x] = s[0][63 - threadIdx.x] + s[1][63 - threadIdx.x]; // BUG: race
    WAIT_GROUPS(0);
}
KERNELS(one_group_too_few)

// Every thread waits for its own copies; for others' there is the barrier.
BODY(own_copies) {
    __shared__ int s[64];
    COPY4(&s[threadIdx.x], &x[threadIdx.x]); // PARTY
    COMMIT();
    WAIT_GROUPS(0);
    if (!BUG)
        __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
}
KERNELS(own_copies)

BODY(copy_over_readers) {
    __shared__ int s[64];
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        COPY4(&s[threadIdx.x], &x[threadIdx.x + k]); // BUG: race
        COMMIT();
        WAIT_GROUPS(0);
        __syncthreads();
        sum += s[63 - threadIdx.x]; // PARTY
        if (!BUG)
            __syncthreads();
    }
    y[threadIdx.x] = sum;
}
KERNELS(copy_over_readers)

BODY(copies_left) {
    __shared__ int s[64];
    COPY4(&s[threadIdx.x], &x[threadIdx.x]); // BUG: sync
    COMMIT();
    if (!BUG)
        WAIT_GROUPS(0);
    y[threadIdx.x] = 1;
}
KERNELS(copies_left)

// What a bulk copy reads was written by threads: the async proxy needs its own fence.
BODY(no_proxy) {
    __shared__ __align__(16) int s[64];
    s[threadIdx.x] = x[threadIdx.x]; // PARTY
    if (!BUG)
        FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE(y, s, 256); // BUG: race
        COMMIT_BULK();
        WAIT_BULK();
    }
}
KERNELS(no_proxy)

// The buffer of a store is written again while the copy may still read it.
BODY(store_overwritten) {
    __shared__ __align__(16) int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE(y, s, 256); // BUG: race
        COMMIT_BULK();
        if (!BUG)
            WAIT_BULK_READ();
        s[5] = 7; // PARTY
        WAIT_BULK();
    }
}
KERNELS(store_overwritten)

// wait_group.read says that the source was read, not that anything was written.
BODY(read_back) {
    __shared__ __align__(16) int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE(y, s, 256); // PARTY
        COMMIT_BULK();
        if (BUG)
            WAIT_BULK_READ();
        else
            WAIT_BULK();
        x[64] = y[0]; // BUG: race
    }
}
KERNELS(read_back)

BODY(left_behind) {
    __shared__ __align__(16) int s[64];
    s[threadIdx.x] = 5;
    FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE(y, s, 256); // BUG: sync
        COMMIT_BULK();
        if (!BUG)
            WAIT_BULK_READ();
    }
}
KERNELS(left_behind)

#define BARRIER(count)                                                                             \
    __shared__ unsigned long long bar;                                                             \
    if (threadIdx.x == 0)                                                                          \
        INIT(bar, count);                                                                          \
    __syncthreads()

// A bulk copy comes in while others still read the buffer.
BODY(early_copy) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    for (int k = 0; k < 2; k++) {
        if (threadIdx.x == 0) {
            EXPECT(bar, 256);
            LOAD(s, x, 256, bar); // BUG: race
        }
        WAIT(bar, k);
        y[threadIdx.x] = s[63 - threadIdx.x]; // PARTY
        if (!BUG)
            __syncthreads();
    }
}
KERNELS(early_copy)

BODY(no_phase_wait) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        LOAD(s, x, 256, bar); // PARTY
    }
    if (!BUG)
        WAIT(bar, 0);
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
    WAIT(bar, 0);
}
KERNELS(no_phase_wait)

// The phase before the first one counts as ended.
BODY(wrong_parity) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        LOAD(s, x, 256, bar); // PARTY
    }
    WAIT(bar, BUG ? 1 : 0);
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
}
KERNELS(wrong_parity)

// The parity does not change from round to round: the second wait is for the phase before.
BODY(stale_parity) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    for (int k = 0; k < 2; k++) {
        if (threadIdx.x == 0) {
            EXPECT(bar, 256);
            LOAD(s, x + 64 * k, 256, bar); // PARTY
        }
        WAIT(bar, BUG ? 0 : k);
        y[64 * k + threadIdx.x] = s[63 - threadIdx.x]; // BUG: race
        __syncthreads();
    }
}
KERNELS(stale_parity)

// Lanes of one warp, which an mbarrier orders as it does others; a lane that does not wait is not.
BODY(lane_without_wait) {
    __shared__ int s[64];
    BARRIER(64);
    s[threadIdx.x] = x[threadIdx.x]; // PARTY
    ARRIVE(bar);
    if (!BUG)
        WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x ^ 1]; // BUG: race
    WAIT(bar, 0);
}
KERNELS(lane_without_wait)

#define COPY_ARRIVE(bar)                                                                           \
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at(&(bar)))          \
                 : "memory")

// A copy of each lane, which arrives in its name.
BODY(copy_without_arrival) {
    __shared__ int s[64];
    BARRIER(64);
    COPY4(&s[threadIdx.x], &x[threadIdx.x]); // PARTY
    if (BUG)
        ARRIVE(bar);
    else
        COPY_ARRIVE(bar);
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x ^ 1]; // BUG: race
    COMMIT();
    WAIT_GROUPS(0);
}
KERNELS(copy_without_arrival)

// Two stages with an mbarrier each, and a wait for the other one's.
BODY(wrong_stage) {
    __shared__ __align__(16) int s[2][64];
    __shared__ unsigned long long bars[2];
    if (threadIdx.x == 0) {
        INIT(bars[0], 1);
        INIT(bars[1], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        EXPECT(bars[0], 256);
        LOAD(s[0], x, 256, bars[0]); // PARTY
        EXPECT(bars[1], 256);
        LOAD(s[1], x + 64, 256, bars[1]);
    }
    WAIT(bars[BUG ? 1 : 0], 0);
    y[threadIdx.x] = s[0][63 - threadIdx.x]; // BUG: race
    WAIT(bars[0], 0);
    WAIT(bars[1], 0);
}
KERNELS(wrong_stage)

// Two copies into one buffer.
BODY(copy_over_copy) {
    __shared__ __align__(16) int s[128];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 512);
        LOAD(s, x, 256, bar);                    // PARTY
        LOAD(s + (BUG ? 0 : 64), x + 64, 256, bar); // BUG: race
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNELS(copy_over_copy)

BODY(never_arrives) {
    BARRIER(2);
    if (threadIdx.x == 0 || (!BUG && threadIdx.x == 1))
        ARRIVE(bar);
    WAIT(bar, 0); // BUG: stuck
    y[threadIdx.x] = 1;
}
KERNELS(never_arrives)

BODY(too_many_bytes) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, BUG ? 512 : 256);
        LOAD(s, x, 256, bar);
    }
    WAIT(bar, 0); // BUG: stuck
    y[threadIdx.x] = s[threadIdx.x];
}
KERNELS(too_many_bytes)

BODY(too_few_bytes) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, BUG ? 128 : 256);
        LOAD(s, x, 256, bar);
    }
    WAIT(bar, 0); // BUG: stuck
    y[threadIdx.x] = s[threadIdx.x];
}
KERNELS(too_few_bytes)

BODY(too_many_arrivals) {
    BARRIER(3);
    if (threadIdx.x == 0)
        ARRIVE_N(bar, BUG ? 4 : 3); // BUG: trap
    WAIT(bar, 0);
    y[threadIdx.x] = 1;
}
KERNELS(too_many_arrivals)

BODY(no_init) {
    __shared__ unsigned long long bar;
    if (!BUG && threadIdx.x == 0)
        INIT(bar, 64);
    __syncthreads();
    ARRIVE(bar); // BUG: trap
    WAIT(bar, 0);
    y[threadIdx.x] = 1;
}
KERNELS(no_init)

BODY(after_inval) {
    BARRIER(64);
    if (BUG && threadIdx.x == 0)
        INVAL(bar);
    __syncthreads();
    ARRIVE(bar); // BUG: trap
    WAIT(bar, 0);
    y[threadIdx.x] = 1;
}
KERNELS(after_inval)

// The other warp may come before the mbarrier is there.
BODY(used_before_init) {
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0)
        INIT(bar, 64); // PARTY
    if (!BUG)
        __syncthreads();
    ARRIVE(bar); // BUG: race
    WAIT(bar, 0);
    y[threadIdx.x] = 1;
}
KERNELS(used_before_init)

BODY(init_twice) {
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        INIT(bar, 1); // PARTY
        if (!BUG)
            INVAL(bar);
        INIT(bar, 64); // BUG: sync
    }
    __syncthreads();
    ARRIVE(bar);
    WAIT(bar, 0);
    y[threadIdx.x] = 1;
}
KERNELS(init_twice)

// An index one too high, and the mbarrier behind the array is gone.
BODY(over_barrier) {
    __shared__ struct {
        int s[64];
        unsigned long long bar;
    } all;
    if (threadIdx.x == 0)
        INIT(all.bar, 64); // PARTY
    __syncthreads();
    all.s[threadIdx.x + (BUG ? 1 : 0)] = x[threadIdx.x]; // BUG: sync
    __syncthreads();
    y[threadIdx.x] = all.s[63];
}
KERNELS(over_barrier)

BODY(no_copy) {
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        INIT(bar, 1); // BUG: sync
        if (BUG)
            EXPECT_ONLY(bar, 256);
    }
    y[threadIdx.x] = 1;
}
KERNELS(no_copy)

BODY(bulk_size) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 240);
        LOAD(s, x, BUG ? 244 : 240, bar); // BUG: trap
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x % 60];
}
KERNELS(bulk_size)

BODY(bulk_misaligned) {
    __shared__ __align__(16) int s[68];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        LOAD(s + (BUG ? 2 : 4), x, 256, bar); // BUG: trap
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x + 4];
}
KERNELS(bulk_misaligned)

BODY(bulk_past_end) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        LOAD(s, x + (BUG ? 964 : 960), 256, bar); // BUG: bounds
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x];
}
KERNELS(bulk_past_end)

#define MAP_BODY(name)                                                                             \
    template <bool BUG>                                                                            \
    __device__ __forceinline__ void name##_body(int *x, int *y, const CUtensorMap &m)
#define TILE(to, map, bar)                                                                         \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"     \
                 "bytes [%0], [%1, {%2, %2}], [%3];" ::"r"(at(to)),                                \
                 "l"(map), "r"(0), "r"(at(&(bar)))                                                 \
                 : "memory")
#define TILE_AT(to, map, column, row, bar)                                                         \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"     \
                 "bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(to)),                                \
                 "l"(map), "r"(column), "r"(row), "r"(at(&(bar)))                                  \
                 : "memory")
#define STORE_TILE(map, column, row, from)                                                         \
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], "     \
                 "[%3];" ::"l"(map),                                                               \
                 "r"(column), "r"(row), "r"(at(from))                                              \
                 : "memory")
#define LINE(to, map, bar)                                                                         \
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::"     \
                 "bytes [%0], [%1, {%2}], [%3];" ::"r"(at(to)),                                    \
                 "l"(map), "r"(0), "r"(at(&(bar)))                                                 \
                 : "memory")
#define SET_BOX(map, n)                                                                            \
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(        \
                     at(map)),                                                                     \
                 "r"(n)                                                                            \
                 : "memory")

MAP_BODY(tile_misaligned) {
    __shared__ __align__(128) int s[128];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        TILE(s + (BUG ? 16 : 32), &m, bar); // BUG: trap
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x + 32];
}
MAP_KERNELS(tile_misaligned)

MAP_BODY(tile_past_shared) {
    __shared__ __align__(128) int s[96];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        TILE(s + (BUG ? 64 : 32), &m, bar); // BUG: bounds
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x + 32];
}
MAP_KERNELS(tile_past_shared)

// From the second column on, 4 bytes into 16.
MAP_BODY(tile_between) {
    __shared__ __align__(128) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        TILE_AT(s, &m, BUG ? 1 : 4, -1, bar); // BUG: trap
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x];
}
MAP_KERNELS(tile_between)

// What a load may do and a store may not.
MAP_BODY(store_before_first) {
    __shared__ __align__(128) int s[64];
    s[threadIdx.x] = 1;
    FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE_TILE(&m, 4, BUG ? -1 : 14, s); // BUG: trap
        COMMIT_BULK();
        WAIT_BULK();
    }
}
MAP_KERNELS(store_before_first)

MAP_BODY(wrong_rank) {
    __shared__ __align__(128) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        if (BUG)
            LINE(s, &m, bar); // BUG: trap
        else
            TILE(s, &m, bar);
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x];
}
MAP_KERNELS(wrong_rank)

// An address that is no map's.
MAP_BODY(not_a_map) {
    __shared__ __align__(128) int s[64];
    const void *map = BUG ? (const void *)x : (const void *)&m;
    BARRIER(1);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        TILE(s, map, bar); // BUG: trap
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x];
}
MAP_KERNELS(not_a_map)

// A box of more than 256 elements.
MAP_BODY(large_box) {
    __shared__ __align__(128) int copy[32];
    if (threadIdx.x < 32)
        copy[threadIdx.x] = ((const int *)&m)[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        SET_BOX(copy, BUG ? 512 : 8); // BUG: trap
    y[threadIdx.x] = 1;
}
MAP_KERNELS(large_box)

#define MULTICAST(to, from, bar, ranks)                                                            \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"   \
                 "cluster [%0], [%1], 256, [%2], %3;" ::"r"(at(to)),                               \
                 "l"(from), "r"(at(&(bar))), "h"((short)(ranks))                                   \
                 : "memory")

BODY(no_such_block) {
    __shared__ __align__(16) int s[64];
    BARRIER(1);
    if (threadIdx.x == 0)
        EXPECT(bar, 256);
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    if (threadIdx.x == 0 && cluster_rank() == 0)
        MULTICAST(s, x, bar, BUG ? 7 : 3); // BUG: trap
    WAIT(bar, 0);
    y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}
KERNELS(no_such_block)
