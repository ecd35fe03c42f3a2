// task: tasks/copy_large.task
// tries: honest: rows of each 64 in the order of their reversed bits
// should: accepted
// device: both
//! launch k<<<ceil_div(R, 64)*64, 256>>>(x, y, R, C)
extern "C" __global__ void k(const float *x, float *y, int r, int c) {
    int row = (blockIdx.x & ~63u) | __brev(blockIdx.x) >> 26;
    if (row >= r)
        return;
    for (int j = threadIdx.x; j < c; j += 256)
        y[(int64_t)row * c + j] = x[(int64_t)row * c + j] + x[(int64_t)row * c + j];
}
