// task: tasks/kernelbench/level1/092_cumsum_exclusive.task
// set: B=256 D=4096
// what: decoupled look-back: blocks take tiles in order and read their predecessors' sums
//! let T = ceil_div(D, 512)
//! workspace state[B, T] : i64
//! workspace ticket[1] : i32
//! memset state = 0
//! memset ticket = 0
//! launch scan<<<B*T, 512>>>(x, y, state, ticket, D, T)
// A tile's state: 1 (its own sum) or 2 (the sum up to its end) in the upper word, the value below.
static __device__ void publish(long long *at, unsigned long long flag, float v) {
    unsigned long long word = flag << 32 | __float_as_uint(v);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

static __device__ unsigned long long observe(const long long *at) {
    unsigned long long word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

static __device__ float look_back(const long long *row, int tile) {
    float sum = 0.0f;
    for (int t = tile - 1; t >= 0;) {
        unsigned long long word = observe(row + t);
        if (word >> 32 == 0)
            continue;
        sum += __uint_as_float((unsigned)word);
        if (word >> 32 == 2)
            break;
        t--;
    }
    return sum;
}

extern "C" __global__ void scan(const float *x, float *y, long long *state, int *ticket, int d,
                                int tiles) {
    __shared__ float warps[16], before;
    __shared__ int mine;
    if (threadIdx.x == 0)
        mine = atomicAdd(ticket, 1);
    __syncthreads();
    int row = mine / tiles, tile = mine % tiles, j = tile * 512 + threadIdx.x;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float own = j < d ? x[(long long)row * d + j] : 0.0f, v = own;
    for (int step = 1; step < 32; step *= 2) {
        float left = __shfl_up_sync(0xffffffffu, v, step);
        if (lane >= step)
            v += left;
    }
    if (lane == 31)
        warps[warp] = v;
    __syncthreads();
    float offset = 0.0f, all = 0.0f;
    for (int w = 0; w < 16; w++) {
        if (w < warp)
            offset += warps[w];
        all += warps[w];
    }
    if (threadIdx.x == 0) {
        long long *states = state + (long long)row * tiles;
        publish(states + tile, tile ? 1 : 2, all);
        before = look_back(states, tile);
        publish(states + tile, 2, before + all);
    }
    float left = __shfl_up_sync(0xffffffffu, v, 1);
    __syncthreads();
    if (j < d)
        y[(long long)row * d + j] = before + offset + (lane ? left : 0.0f);
}
