// Sums of columns: a thread V columns, PARTS blocks share the rows, in ROWS rows of threads with
// UNROLL rows under way; a second kernel adds the parts. (Atomics would lose subnormal numbers.)
// default: BLOCK = 64
// default: ROWS = 4
// default: V = 1
// default: PARTS = 32
// default: UNROLL = 1
//! require C % (BLOCK*V) == 0
//! require R % (ROWS*PARTS*UNROLL) == 0
//! require aligned(x, 16)
//! workspace part[PARTS*ROWS, C] : f32
//! launch sums<<<[C/(BLOCK*V), PARTS], [BLOCK, ROWS]>>>(x, part, R, C)
//! launch add<<<ceil_div(C, 128), 128>>>(part, y, C)
struct alignas(4 * V) vec {
    float at[V];
};

extern "C" __global__ void sums(const float *from, float *part, int rows, int cols) {
    const vec *x = (const vec *)from;
    int j = blockIdx.x * BLOCK + threadIdx.x, each = rows / PARTS, n = cols / V;
    vec sum = {};
    long long i = blockIdx.y * each + threadIdx.y;
    for (int k = 0; k < each / (ROWS * UNROLL); k++, i += ROWS * UNROLL) {
        vec v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            v[u] = x[(i + u * ROWS) * n + j];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            for (int l = 0; l < V; l++)
                sum.at[l] += v[u].at[l];
    }
    ((vec *)part)[(long long)(blockIdx.y * ROWS + threadIdx.y) * n + j] = sum;
}

extern "C" __global__ void add(const float *part, float *y, int cols) {
    int j = blockIdx.x * 128 + threadIdx.x;
    float sum = 0.0f;
    if (j >= cols)
        return;
#pragma unroll 4
    for (int p = 0; p < PARTS * ROWS; p++)
        sum += part[(long long)p * cols + j];
    y[j] = sum;
}
