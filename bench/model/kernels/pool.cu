// Maxima of windows: a thread OUT neighbours of a row (WAY 0), a column of OUT (WAY 1: what two
// windows share is read once), or through shared memory (WAY 2).
// default: BX = 64
// default: BY = 4
// default: OUT = 1
// default: WAY = 0
//! let ACROSS = (WAY == 0)*(OUT - 1) + 1
//! let DOWN = (WAY == 1)*(OUT - 1) + 1
//! require W % (BX*ACROSS) == 0
//! require H % (BY*DOWN) == 0
//! launch pool<<<[W/(BX*ACROSS), H/(BY*DOWN), B], [BX, BY]>>>(x, y, H, W)
static __device__ float larger(float a, float b) {
    return a > b || a != a ? a : b;
}

extern "C" __global__ void pool(const float *x, float *y, int h, int w) {
    long long wide = 2 * w + 1;
    x += blockIdx.z * (2LL * h + 1) * wide;
    y += blockIdx.z * (long long)h * w;
#if WAY == 0
    int i = blockIdx.y * BY + threadIdx.y, first = (blockIdx.x * BX + threadIdx.x) * OUT;
    for (int o = 0; o < OUT; o++) {
        int j = first + o;
        float m = -INFINITY;
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                m = larger(m, x[(2 * i + r) * wide + 2 * j + s]);
        y[(long long)i * w + j] = m;
    }
#elif WAY == 1
    int i = (blockIdx.y * BY + threadIdx.y) * OUT, j = blockIdx.x * BX + threadIdx.x;
    float line[3];
    for (int s = 0; s < 3; s++)
        line[0] = s ? larger(line[0], x[2 * i * wide + 2 * j + s]) : x[2 * i * wide + 2 * j];
#pragma unroll
    for (int o = 0; o < OUT; o++) {
        for (int r = 1; r < 3; r++) {
            const float *p = x + (2 * (i + o) + r) * wide + 2 * j;
            line[r] = larger(larger(p[0], p[1]), p[2]);
        }
        y[(long long)(i + o) * w + j] = larger(larger(line[0], line[1]), line[2]);
        line[0] = line[2];
    }
#else
    __shared__ float tile[2 * BY + 1][2 * BX + 1];
    int top = 2 * blockIdx.y * BY, left = 2 * blockIdx.x * BX;
    for (int e = threadIdx.y * BX + threadIdx.x; e < (2 * BY + 1) * (2 * BX + 1); e += BX * BY)
        tile[e / (2 * BX + 1)][e % (2 * BX + 1)] =
            x[(top + e / (2 * BX + 1)) * wide + left + e % (2 * BX + 1)];
    __syncthreads();
    float m = -INFINITY;
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++)
            m = larger(m, tile[2 * threadIdx.y + r][2 * threadIdx.x + s]);
    y[(long long)(blockIdx.y * BY + threadIdx.y) * w + blockIdx.x * BX + threadIdx.x] = m;
#endif
}
