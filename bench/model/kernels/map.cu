// Element by element: V floats at a time, ITEMS times a thread, all of a block's together
// (SPREAD 0) or each thread's its own (SPREAD 1: neighbours are far apart). GRID blocks walk through
// everything. LIMIT bytes of shared memory keep blocks off an SM.
// default: V = 1
// default: ITEMS = 1
// default: BLOCK = 256
// default: SPREAD = 0
// default: LIMIT = 0
// default: GELU = 0
// default: GRID = ceil_div(R*C, BLOCK*V*ITEMS)
//! require R*C % (BLOCK*V*ITEMS) == 0
//! require aligned(x, 16)
//! require aligned(y, 16)
//! launch map<<<GRID, BLOCK, LIMIT>>>(x, y, R*C)
struct alignas(4 * V) vec {
    float at[V];
};

static __device__ float f(float v) {
#if GELU
    return 0.5f * v * (1.0f + erff(v * 0.70710678f));
#else
    return 0.5f * v * v + v;
#endif
}

extern "C" __global__ void map(const float *from, float *to, long long n) {
    const vec *x = (const vec *)from;
    vec *y = (vec *)to;
    const long long step = (long long)gridDim.x * BLOCK * ITEMS;
    for (long long at = (long long)blockIdx.x * BLOCK * ITEMS; at < n / V; at += step) {
        vec v[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            v[k] = x[at + (SPREAD ? threadIdx.x * ITEMS + k : k * BLOCK + threadIdx.x)];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            for (int u = 0; u < V; u++)
                v[k].at[u] = f(v[k].at[u]);
            y[at + (SPREAD ? threadIdx.x * ITEMS + k : k * BLOCK + threadIdx.x)] = v[k];
        }
    }
}
