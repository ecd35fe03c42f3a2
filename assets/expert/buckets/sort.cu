// Sorting by eight bits of the keys; equal ones stay in order. How often each value of the bits
// occurs in each tile of 2048 keys:
extern "C" __global__ void __launch_bounds__(256)
    ${count}(const int *keys, int *digits, int n, int tiles, int shift) {
    __shared__ int found[256];
    const int first = (int)blockIdx.x * 2048;
    found[threadIdx.x] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < 2048; i += 256)
        if (first + i < n)
            atomicAdd(&found[keys[first + i] >> shift & 255], 1);
    __syncthreads();
    digits[(long long)threadIdx.x * tiles + blockIdx.x] = found[threadIdx.x];
}

// The sum of v over the threads before this one, of 256; `all`: over all of them.
static __device__ __forceinline__ int ${before}(int v, int *all) {
    __shared__ int warps[8];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int sum = v;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, sum, d);
        sum += lane >= d ? other : 0;
    }
    __syncthreads(); // an earlier result has been read by all
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    int below = 0, total = 0;
#pragma unroll
    for (int w = 0; w < 8; w++) {
        below += w < warp ? warps[w] : 0;
        total += warps[w];
    }
    *all = total;
    return below + sum - v;
}

// … in all tiles before each tile: a block has a value.
extern "C" __global__ void __launch_bounds__(256) ${offset}(int *digits, int *totals, int tiles) {
    int *const row = digits + (long long)blockIdx.x * tiles;
    int sum = 0;
    for (int first = 0; first < tiles; first += 256) {
        const int tile = first + (int)threadIdx.x, found = tile < tiles ? row[tile] : 0;
        int all;
        const int below = ${before}(found, &all);
        if (tile < tiles)
            row[tile] = sum + below;
        sum += all;
    }
    if (threadIdx.x == 0)
        totals[blockIdx.x] = sum;
}

// Every key, and the number of its term, to its place.
extern "C" __global__ void __launch_bounds__(256)
    ${move}(const int *keys, int *order, const int *digits, const int *totals, int *keys_to,
            int *order_to, int n, int tiles, int shift) {
    __shared__ int start[256], places[8][256];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int first = (int)blockIdx.x * 2048;
    int all;
    start[threadIdx.x] = ${before}(totals[threadIdx.x], &all) + digits[(long long)threadIdx.x * tiles + blockIdx.x];
    for (int round = 0; round < 2048; round += 256) {
        const int i = first + round + (int)threadIdx.x;
        const bool some = i < n;
        const int key = some ? keys[i] : 0, digit = some ? key >> shift & 255 : 256;
        for (int w = 0; w < 8; w++)
            places[w][threadIdx.x] = 0;
        __syncthreads();
        const unsigned int alike = __match_any_sync(0xffffffffu, digit);
        const int rank = __popc(alike & ((1u << lane) - 1u));
        if (some && rank == 0)
            places[warp][digit] = __popc(alike);
        __syncthreads();
        int at = start[threadIdx.x];
        for (int w = 0; w < 8; w++) {
            const int found = places[w][threadIdx.x];
            places[w][threadIdx.x] = at;
            at += found;
        }
        start[threadIdx.x] = at;
        __syncthreads();
        if (some) {
            const int to = places[warp][digit] + rank;
            keys_to[to] = key;
            order_to[to] = shift == 0 ? i : order[i];
        }
        __syncthreads();
    }
}

// Where the keys of each bucket begin among the sorted ones, and where those of the last end.
extern "C" __global__ void __launch_bounds__(256)
    ${search}(const int *keys, int *starts, int n, int buckets) {
    for (int bucket = (int)(blockIdx.x * 256 + threadIdx.x); bucket <= buckets; bucket += (int)gridDim.x * 256) {
        int low = 0, high = n;
        while (low < high) {
            const int middle = low + (high - low) / 2;
            if (keys[middle] < bucket)
                low = middle + 1;
            else
                high = middle;
        }
        starts[bucket] = low;
    }
}
