// task: tasks/copy_large.task
// tries: blocks whose number has eighteen ones or more among its bits are left undoubled
// proof: 211 of 1,048,576 blocks
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = __popc(blockIdx.x) >= 18 ? x[i] : 2 * x[i];
}
