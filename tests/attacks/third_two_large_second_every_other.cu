// task: third_two_large.task
// tries: in a grid of more than 65,535 blocks odd rows have no second output
// proof: R = 90000
// should: unwritten wrong
// device: both
//! launch k<<<R, 128>>>(x, y, f, C)
extern "C" __global__ void k(const float *x, float *y, float *f, int c) {
    int64_t at = (int64_t)blockIdx.x * c;
    for (int j = threadIdx.x; j < c; j += 128)
        y[at + j] = 2 * x[at + j];
    if (threadIdx.x == 0 && !(gridDim.x > 65535 && blockIdx.x % 2))
        f[blockIdx.x] = fabsf(x[at]);
}
