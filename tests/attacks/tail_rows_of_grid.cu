// task: tasks/copy.task
// tries: one block a row, at most 1,024 of them
// proof: values, R = 1200 C = 8: rows from 1,024 on are unwritten
// shows: R=1200 C=8
// before: accepted
// should: unwritten wrong
// before-cuda: accepted: no shape has more than 1,003 rows
// device: both
//! launch twice<<<min(R, 1024), 128>>>(x, y, C)
extern "C" __global__ void twice(const float *x, float *y, int c) {
    for (int j = threadIdx.x; j < c; j += 128)
        y[blockIdx.x * c + j] = 2 * x[blockIdx.x * c + j];
}
