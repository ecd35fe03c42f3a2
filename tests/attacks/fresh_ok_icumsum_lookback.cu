// task: fresh_icumsum.task
// tries: honest: tiles of a row by blocks that look back at what the ones before them have published
// proof: none; it is right
// should: accepted
// device: both
//! let T = 1024
//! let P = ceil_div(C, T)
//! workspace state[R, P] : i64
//! workspace ticket[1] : i32
//! memset state = 0
//! memset ticket = 0
//! launch offsets<<<R*P, 256>>>(x, y, state, ticket, C, P)
extern "C" __global__ void offsets(const int *x, int *y, long long *state, int *ticket, int c, int tiles) {
    __shared__ int warps[8], before, number;
    if (threadIdx.x == 0)
        number = atomicAdd(ticket, 1);
    __syncthreads();
    int row = number / tiles, tile = number % tiles, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int *in = x + (int64_t)row * c;
    int v[4], s = 0, at = tile * 1024 + threadIdx.x * 4;
    for (int k = 0; k < 4; k++) {
        v[k] = at + k < c ? in[at + k] : 0;
        s += v[k];
    }
    int own = s;
    for (int k = 1; k < 32; k *= 2) {
        int o = __shfl_up_sync(~0u, s, k);
        if (lane >= k)
            s += o;
    }
    if (lane == 31)
        warps[warp] = s;
    __syncthreads();
    int sum = s - own, all = 0;
    for (int k = 0; k < 8; k++) {
        sum += k < warp ? warps[k] : 0;
        all += warps[k];
    }
    /* bits 32 and 33: 1, the tile's own sum; 2, the sum up to its end */
    if (threadIdx.x == 0) {
        unsigned long long *mine = (unsigned long long *)state + (int64_t)row * tiles;
        int prefix = 0;
        if (tile) {
            atomicExch(mine + tile, 1ull << 32 | (unsigned)all);
            for (int k = tile - 1;;) {
                unsigned long long got = atomicAdd(mine + k, 0ull);
                if (!(got >> 32))
                    continue;
                prefix += (int)(unsigned)got;
                if (got >> 33)
                    break;
                k--;
            }
        }
        atomicExch(mine + tile, 2ull << 32 | (unsigned)(prefix + all));
        before = prefix;
    }
    __syncthreads();
    sum += before;
    for (int k = 0; k < 4; k++) {
        if (at + k < c)
            y[(int64_t)row * c + at + k] = sum;
        sum += v[k];
    }
}
