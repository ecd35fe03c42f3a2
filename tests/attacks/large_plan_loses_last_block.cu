// task: tasks/copy_large.task
// tries: the plan has one block too few where there are more than a million elements
// proof: values, R = 1000 C = 2000: the last 256 elements are unwritten
// shows: R=1000 C=2000
// before: accepted
// should: unwritten wrong
// before-cuda: unwritten
// device: both
//! let G = ceil_div(R*C, 256)
//! let L = min(1, R*C // 1048576)
//! launch twice<<<max(1, G - L), 256>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] = 2 * x[i];
}
