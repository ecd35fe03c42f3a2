// task: tasks/copy_large.task
// tries: honest: blocks go through the matrix in groups of eight rows by remainders
// should: accepted
// device: both
//! launch k<<<ceil_div(R, 8)*ceil_div(C, 256)*8, 256>>>(x, y, R, C)
extern "C" __global__ void k(const float *x, float *y, int r, int c) {
    int wide = (c + 255) / 256, group = blockIdx.x / (8 * wide), in = blockIdx.x % (8 * wide);
    int row = group * 8 + in % 8, j = in / 8 * 256 + threadIdx.x;
    if (row < r && j < c)
        y[(int64_t)row * c + j] = 2 * x[(int64_t)row * c + j];
}
