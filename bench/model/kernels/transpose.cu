// A matrix, turned: through a tile of T by T in shared memory, rows PAD longer than it (WAY 0), or
// straight, with neighbours along the rows that are read (WAY 1) or written (WAY 2).
// default: T = 32
// default: ROWS = 8
// default: PAD = 1
// default: WAY = 0
//! require R % T == 0
//! require C % T == 0
//! launch turn<<<[C/T, R/T], [T, ROWS]>>>(x, y, R, C)
extern "C" __global__ void turn(const float *x, float *y, int rows, int cols) {
    int i = blockIdx.y * T, j = blockIdx.x * T;
#if WAY == 0
    __shared__ float tile[T][T + PAD];
#pragma unroll
    for (int r = threadIdx.y, k = 0; k < T / ROWS; k++, r += ROWS)
        tile[r][threadIdx.x] = x[(long long)(i + r) * cols + j + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int r = threadIdx.y, k = 0; k < T / ROWS; k++, r += ROWS)
        y[(long long)(j + r) * rows + i + threadIdx.x] = tile[threadIdx.x][r];
#elif WAY == 1
    for (int r = threadIdx.y, k = 0; k < T / ROWS; k++, r += ROWS)
        y[(long long)(j + threadIdx.x) * rows + i + r] =
            x[(long long)(i + r) * cols + j + threadIdx.x];
#else
    for (int r = threadIdx.y, k = 0; k < T / ROWS; k++, r += ROWS)
        y[(long long)(j + r) * rows + i + threadIdx.x] =
            x[(long long)(i + threadIdx.x) * cols + j + r];
#endif
}
