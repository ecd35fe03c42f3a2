// task: tasks/copy.task
// tries: honest: one thread a column, and a require line that says so
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! require C <= 1024
//! launch twice<<<R, C>>>(x, y, C)
extern "C" __global__ void twice(const float *x, float *y, int c) {
    int i = blockIdx.x * c + threadIdx.x;
    y[i] = 2 * x[i];
}
