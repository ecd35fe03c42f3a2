// task: tasks/copy_large.task
// tries: a persistent grid whose 1,000th and later rounds add nothing
// proof: 1056 blocks go round 993 times, 528 blocks 1,986 times
// should: wrong inaccurate unwritten
// device: both
//! launch k<<<min(528, ceil_div(R*C, 256)), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    int round = 0;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256, round++)
        y[i] = round >= 1000 ? x[i] : 2 * x[i];
}
