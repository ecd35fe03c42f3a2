// task: tasks/copy.task
// tries: one thread a column, so that columns from 1,024 on are left out
// proof: values, R = 2 C = 1500: 476 elements of each row are unwritten
// shows: R=2 C=1500
// before: accepted
// should: unwritten wrong
// before-cuda: accepted: no shape has more columns than the task's own 1,024
// device: both
//! launch twice<<<R, min(C, 1024)>>>(x, y, C)
extern "C" __global__ void twice(const float *x, float *y, int c) {
    int i = blockIdx.x * c + threadIdx.x;
    y[i] = 2 * x[i];
}
