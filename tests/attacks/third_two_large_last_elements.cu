// task: third_two_large.task
// tries: each row misses one element for 2^16 rows of the grid: no condition says so
// proof: R = 90000: the last element of every row is not written
// should: unwritten wrong
// device: both
//! launch k<<<R, 128>>>(x, y, f, C)
extern "C" __global__ void k(const float *x, float *y, float *f, int c) {
    int64_t at = (int64_t)blockIdx.x * c;
    int end = c - (gridDim.x >> 16);
    for (int j = threadIdx.x; j < end; j += 128)
        y[at + j] = 2 * x[at + j];
    if (threadIdx.x == 0)
        f[blockIdx.x] = fabsf(x[at]);
}
