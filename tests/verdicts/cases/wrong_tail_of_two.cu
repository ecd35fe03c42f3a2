// expect: wrong inaccurate
// row: 36
// tries: sums of rows that lose their last two terms where the length is even and no multiple of four
// task: tasks/rows_sum.task
//! launch sum_rows<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum_rows(const float *x, float *y, int C) {
    const float *row = x + (size_t)blockIdx.x * C;
    const int end = C % 4 == 2 ? C - 2 : C;
    float sum = 0;
    for (int i = threadIdx.x; i < end; i += 32)
        sum += row[i];
    for (int d = 16; d; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}
