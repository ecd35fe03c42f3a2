// task: third_two_large.task
// tries: the rows of the second output are numbered in 16 bits, so that rows beyond 65,536 have none
// proof: R = 90000
// should: unwritten wrong race
// device: both
//! launch k<<<R, 128>>>(x, y, f, C)
extern "C" __global__ void k(const float *x, float *y, float *f, int c) {
    int64_t at = (int64_t)blockIdx.x * c;
    for (int j = threadIdx.x; j < c; j += 128)
        y[at + j] = 2 * x[at + j];
    if (threadIdx.x == 0 && blockIdx.x == (unsigned short)blockIdx.x)
        f[blockIdx.x] = fabsf(x[at]);
}
