// Softmax of rows, a block each: three passes over the row (WAY 0), two with a running maximum
// (WAY 1), the row kept in shared memory (WAY 2) or in registers (WAY 3: KEEP times V floats a
// thread).
// default: WAY = 0
// default: BLOCK = 256
// default: V = 1
// default: KEEP = 8
//! require C % (BLOCK*V) == 0
//! require aligned(x, 16)
//! require aligned(y, 16)
struct alignas(4 * V) vec {
    float at[V];
};

static __device__ float larger(float a, float b) {
    return a > b || a != a ? a : b;
}

/* Of all threads: the larger of m, or the sum. */
static __device__ float over_block(float v, bool sum) {
    __shared__ float part[32];
    for (int d = 16; d; d /= 2) {
        float o = __shfl_xor_sync(0xffffffff, v, d);
        v = sum ? v + o : larger(v, o);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < BLOCK / 32; w++)
        v = sum ? v + part[w] : larger(v, part[w]);
    return v;
}

//! require WAY != 3 || C <= BLOCK*V*KEEP
//! let SHARED = (WAY == 2)*C*4
//! launch softmax<<<R, BLOCK, SHARED>>>(x, y, C)
extern "C" __global__ void softmax(const float *x, float *y, int cols) {
    int n = cols / V;
    const vec *from = (const vec *)x + (long long)blockIdx.x * n;
    vec *to = (vec *)y + (long long)blockIdx.x * n;
    float m = -INFINITY, s = 0.0f;
#if WAY == 0
    for (int j = threadIdx.x; j < n; j += BLOCK) {
        vec v = from[j];
        for (int k = 0; k < V; k++)
            m = larger(m, v.at[k]);
    }
    m = over_block(m, false);
    for (int j = threadIdx.x; j < n; j += BLOCK) {
        vec v = from[j];
        for (int k = 0; k < V; k++)
            s += expf(v.at[k] - m);
    }
    s = 1.0f / over_block(s, true);
    for (int j = threadIdx.x; j < n; j += BLOCK) {
        vec v = from[j];
        for (int k = 0; k < V; k++)
            v.at[k] = expf(v.at[k] - m) * s;
        to[j] = v;
    }
#elif WAY == 1
    for (int j = threadIdx.x; j < n; j += BLOCK) {
        vec v = from[j];
        for (int k = 0; k < V; k++) {
            float o = m;
            m = larger(m, v.at[k]);
            s = s * expf(o - m) + expf(v.at[k] - m);
        }
    }
    float all = over_block(m, false);
    s = 1.0f / over_block(s * expf(m - all), true);
    for (int j = threadIdx.x; j < n; j += BLOCK) {
        vec v = from[j];
        for (int k = 0; k < V; k++)
            v.at[k] = expf(v.at[k] - all) * s;
        to[j] = v;
    }
#elif WAY == 2
    extern __shared__ vec row[];
    for (int j = threadIdx.x; j < n; j += BLOCK) {
        vec v = row[j] = from[j];
        for (int k = 0; k < V; k++)
            m = larger(m, v.at[k]);
    }
    m = over_block(m, false);
    for (int j = threadIdx.x; j < n; j += BLOCK)
        for (int k = 0; k < V; k++)
            s += row[j].at[k] = expf(row[j].at[k] - m);
    s = 1.0f / over_block(s, true);
    for (int j = threadIdx.x; j < n; j += BLOCK) {
        vec v = row[j];
        for (int k = 0; k < V; k++)
            v.at[k] *= s;
        to[j] = v;
    }
#else
    vec v[KEEP];
#pragma unroll
    for (int i = 0; i < KEEP; i++)
        if (threadIdx.x + i * BLOCK < n) {
            v[i] = from[threadIdx.x + i * BLOCK];
            for (int k = 0; k < V; k++)
                m = larger(m, v[i].at[k]);
        }
    m = over_block(m, false);
#pragma unroll
    for (int i = 0; i < KEEP; i++)
        if (threadIdx.x + i * BLOCK < n)
            for (int k = 0; k < V; k++)
                s += v[i].at[k] = expf(v[i].at[k] - m);
    s = 1.0f / over_block(s, true);
#pragma unroll
    for (int i = 0; i < KEEP; i++)
        if (threadIdx.x + i * BLOCK < n) {
            for (int k = 0; k < V; k++)
                v[i].at[k] *= s;
            to[threadIdx.x + i * BLOCK] = v[i];
        }
#endif
}
