// task: ../../tasks/kernelbench/level1/013_symmetric_matmul.task
// tries: honest: reads A by columns, since it is symmetric, through dynamic shared memory
// proof: none; it is right
// should: accepted
// device: both
//! launch product<<<[ceil_div(N, 16), ceil_div(N, 16)], [16, 16], 2*16*17*4>>>(A, B, C, N)
extern "C" __global__ void product(const float *a, const float *b, float *c, int n) {
    extern __shared__ float memory[];
    float(*ta)[17] = (float(*)[17])memory, (*tb)[17] = (float(*)[17])(memory + 16 * 17);
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16, col = blockIdx.x * 16;
    float s = 0;
    for (int k = 0; k < n; k += 16) {
        ta[y][x] = k + y < n && row + x < n ? a[(int64_t)(k + y) * n + row + x] : 0.0f;
        tb[y][x] = k + y < n && col + x < n ? b[(int64_t)(k + y) * n + col + x] : 0.0f;
        __syncthreads();
        for (int t = 0; t < 16; t++)
            s = fmaf(ta[t][y], tb[t][x], s);
        __syncthreads();
    }
    if (row + y < n && col + x < n)
        c[(int64_t)(row + y) * n + col + x] = s;
}
