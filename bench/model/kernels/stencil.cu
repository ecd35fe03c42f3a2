// Nine points: a thread DOWN points of a column, in blocks of BX by BY; through a tile in shared
// memory (SHARED 1), straight from memory, or from memory with the rows of the column kept in
// registers (ROLL 1).
// default: BX = 32
// default: BY = 8
// default: DOWN = 1
// default: SHARED = 0
// default: ROLL = 0
//! require R % (BY*DOWN) == 0
//! require C % BX == 0
//! launch stencil<<<[C/BX, R/(BY*DOWN)], [BX, BY]>>>(x, y, R, C)
static __device__ float at(const float *x, int i, int j, int rows, int cols) {
    return i >= 0 && i < rows && j >= 0 && j < cols ? x[(long long)i * cols + j] : 0.0f;
}

extern "C" __global__ void stencil(const float *x, float *y, int rows, int cols) {
    int top = blockIdx.y * BY * DOWN, j = blockIdx.x * BX + threadIdx.x;
#if SHARED
    __shared__ float tile[BY * DOWN + 2][BX + 2];
    for (int e = threadIdx.y * BX + threadIdx.x; e < (BY * DOWN + 2) * (BX + 2); e += BX * BY)
        tile[e / (BX + 2)][e % (BX + 2)] =
            at(x, top + e / (BX + 2) - 1, (int)blockIdx.x * BX + e % (BX + 2) - 1, rows, cols);
    __syncthreads();
    for (int d = 0; d < DOWN; d++) {
        int i = threadIdx.y * DOWN + d;
        float sum = 0.0f;
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                sum += tile[i + r][threadIdx.x + s];
        y[(long long)(top + i) * cols + j] = sum / 9.0f;
    }
#elif ROLL
    int i = top + threadIdx.y * DOWN;
    float line[3];
    for (int r = 0; r < 2; r++)
        line[r] = at(x, i + r - 1, j - 1, rows, cols) + at(x, i + r - 1, j, rows, cols) +
                  at(x, i + r - 1, j + 1, rows, cols);
#pragma unroll
    for (int d = 0; d < DOWN; d++) {
        line[2] = at(x, i + d + 1, j - 1, rows, cols) + at(x, i + d + 1, j, rows, cols) +
                  at(x, i + d + 1, j + 1, rows, cols);
        y[(long long)(i + d) * cols + j] = (line[0] + line[1] + line[2]) / 9.0f;
        line[0] = line[1];
        line[1] = line[2];
    }
#else
    for (int d = 0; d < DOWN; d++) {
        int i = top + threadIdx.y * DOWN + d;
        float sum = 0.0f;
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                sum += at(x, i + r - 1, j + s - 1, rows, cols);
        y[(long long)i * cols + j] = sum / 9.0f;
    }
#endif
}
