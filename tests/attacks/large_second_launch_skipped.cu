// task: tasks/copy_large.task
// tries: the second of two launches does nothing where it has 65,536 blocks or more
// proof: values, R = 20000 C = 1000: the output holds x, not 2x
// shows: R=20000 C=1000
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong
// device: both
//! launch copy<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
//! launch twice<<<ceil_div(R*C, 256), 256>>>(y, R*C)
extern "C" __global__ void copy(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}
extern "C" __global__ void twice(float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] *= gridDim.x < 65536 ? 2 : 1;
}
