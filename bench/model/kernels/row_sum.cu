// Sums of rows: a row by GROUP threads of a block of BLOCK, V floats at a time, UNROLL of them under
// way; GROUP 1 is a thread a row.
// default: BLOCK = 256
// default: GROUP = 32
// default: V = 1
// default: UNROLL = 1
//! require C % (GROUP*V*UNROLL) == 0
//! require R % (BLOCK/GROUP) == 0
//! require aligned(x, 16)
//! launch sums<<<R/(BLOCK/GROUP), BLOCK>>>(x, y, C)
struct alignas(4 * V) vec {
    float at[V];
};

extern "C" __global__ void sums(const float *from, float *y, int cols) {
    const vec *x = (const vec *)from;
    int t = threadIdx.x % GROUP, g = threadIdx.x / GROUP, n = cols / V;
    long long row = (long long)blockIdx.x * (BLOCK / GROUP) + g;
    float sum[UNROLL] = {0.0f};
    for (int j = t; j < n; j += GROUP * UNROLL) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            vec v = x[row * n + j + u * GROUP];
            for (int k = 0; k < V; k++)
                sum[u] += v.at[k];
        }
    }
    for (int u = 1; u < UNROLL; u++)
        sum[0] += sum[u];
    for (int d = (GROUP < 32 ? GROUP : 32) / 2; d; d /= 2)
        sum[0] += __shfl_xor_sync(0xffffffff, sum[0], d);
#if GROUP > 32
    __shared__ float part[32];
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum[0];
    __syncthreads();
    if (t == 0)
        for (int w = 1; w < GROUP / 32; w++)
            sum[0] += part[threadIdx.x / 32 + w];
#endif
    if (t == 0)
        y[row] = sum[0];
}
