
// The terms of a reduction by index, sorted by the number of their list: seven bits at a time, stably,
// so that the terms of each list stay in order. A block of 128 threads has a tile of 1024 terms.

enum { SORT_TILE = 1024, SORT_VALUES = 128 };

// The sum of v over the threads before this one; `all`: over all of them.
__device__ static inline uint32_t sum_before(uint32_t v, uint32_t *all) {
    __shared__ uint32_t warps[ORACLE_BLOCK / 32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    uint32_t sum = v, below = 0, total = 0;
    for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, sum, d);
        sum += lane >= d ? other : 0;
    }
    __syncthreads(); // an earlier result has been read by all
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    for (int w = 0; w < ORACLE_BLOCK / 32; w++) {
        below += w < warp ? warps[w] : 0;
        total += warps[w];
    }
    *all = total;
    return below + sum - v;
}

// How often each value of the bits occurs in each tile.
extern "C" __global__ void oracle_sort_count(const __grid_constant__ oracle_sort s) {
    __shared__ uint32_t found[SORT_VALUES];
    const int64_t first = (int64_t)blockIdx.x * SORT_TILE;
    found[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = first + threadIdx.x; i < integer_minimum(first + SORT_TILE, s.count); i += ORACLE_BLOCK)
        atomicAdd(&found[s.keys[i] >> s.shift & (SORT_VALUES - 1)], 1u);
    __syncthreads();
    s.digits[threadIdx.x * s.tiles + blockIdx.x] = found[threadIdx.x];
}

// ... in all tiles before each tile: a block has a value.
extern "C" __global__ void oracle_sort_offset(const __grid_constant__ oracle_sort s) {
    uint32_t *const row = s.digits + blockIdx.x * s.tiles;
    uint32_t sum = 0;
    for (int64_t first = 0; first < s.tiles; first += ORACLE_BLOCK) {
        const int64_t tile = first + threadIdx.x;
        const uint32_t found = tile < s.tiles ? row[tile] : 0;
        uint32_t all;
        const uint32_t below = sum_before(found, &all);
        if (tile < s.tiles)
            row[tile] = sum + below;
        sum += all;
    }
    if (threadIdx.x == 0)
        s.totals[blockIdx.x] = sum;
}

// Every key, and the number of its term, to its place.
extern "C" __global__ void oracle_sort_move(const __grid_constant__ oracle_sort s) {
    __shared__ uint32_t places[ORACLE_BLOCK / 32][SORT_VALUES];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t first = (int64_t)blockIdx.x * SORT_TILE;
    uint32_t all;
    // Where the next term goes whose bits have the value of this thread.
    uint32_t next = sum_before(s.totals[threadIdx.x], &all) + s.digits[threadIdx.x * s.tiles + blockIdx.x];
    for (int round = 0; round < SORT_TILE; round += ORACLE_BLOCK) {
        const int64_t i = first + round + threadIdx.x;
        const bool some = i < s.count;
        const uint32_t key = some ? s.keys[i] : 0;
        const int digit = some ? (int)(key >> s.shift & (SORT_VALUES - 1)) : SORT_VALUES;
        for (int w = 0; w < ORACLE_BLOCK / 32; w++)
            places[w][threadIdx.x] = 0;
        __syncthreads();
        const unsigned alike = __match_any_sync(0xffffffffu, digit);
        const int rank = __popc(alike & ((1u << lane) - 1u));
        if (some && rank == 0)
            places[warp][digit] = (uint32_t)__popc(alike);
        __syncthreads();
        for (int w = 0; w < ORACLE_BLOCK / 32; w++) {
            const uint32_t found = places[w][threadIdx.x];
            places[w][threadIdx.x] = next;
            next += found;
        }
        __syncthreads();
        if (some) {
            const uint32_t to = places[warp][digit] + (uint32_t)rank;
            s.keys_to[to] = key;
            s.order_to[to] = s.shift == 0 ? (uint32_t)i : s.order[i];
        }
        __syncthreads();
    }
}

// Where each list begins, and where the last one ends.
extern "C" __global__ void oracle_sort_search(const __grid_constant__ oracle_sort s) {
    const int64_t list = (int64_t)blockIdx.x * ORACLE_BLOCK + threadIdx.x;
    int64_t low = 0, high = s.count;
    if (list > s.lists)
        return;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s.keys[middle] < (uint64_t)list)
            low = middle + 1;
        else
            high = middle;
    }
    s.start[list] = (uint32_t)low;
}
