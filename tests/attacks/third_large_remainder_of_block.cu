// task: tasks/copy_large.task
// tries: blocks with remainder 4,000 by 4,099 are left undoubled
// proof: one block in 4,099
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = blockIdx.x % 4099 == 4000 ? x[i] : 2 * x[i];
}
