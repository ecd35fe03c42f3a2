// task: tasks/copy_large.task
// tries: elements whose number has remainder 999983 by 1000003 are left undoubled
// proof: element 999983
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = i % 1000003 == 999983 ? x[i] : 2 * x[i];
}
