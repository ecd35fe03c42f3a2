// task: tasks/copy_large.task
// tries: a persistent grid of which one block, by a hash, is wrong in one round of 1,986
// proof: element 77777 * 256 and the next ones
// should: wrong inaccurate
// known-sim: one round of a thousand in one block; a GPU runs all of it
// device: both
//! launch k<<<min(528, ceil_div(R*C, 256)), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256)
        y[i] = i / 256 == 77777 ? x[i] : 2 * x[i];
}
