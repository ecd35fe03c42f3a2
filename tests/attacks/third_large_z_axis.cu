// task: tasks/copy_large.task
// tries: the grid's third axis has 70 parts of 1024 rows, of which the last ones go beyond what its bits say
// proof: rows from 65,536 on are visited as rows of the first part again
// set: R=70000
// should: wrong unwritten race inaccurate
// device: both
//! launch k<<<[ceil_div(C, 256), 1024, ceil_div(R, 1024)], 256>>>(x, y, R, C)
extern "C" __global__ void k(const float *x, float *y, int r, int c) {
    int row = (blockIdx.z & 63) * 1024 + blockIdx.y, j = blockIdx.x * 256 + threadIdx.x;
    if (row < r && j < c)
        y[(int64_t)row * c + j] = 2 * x[(int64_t)row * c + j];
}
