// task: tasks/copy.task
// tries: takes a square matrix for one that may be transposed
// proof: values, R = 5 C = 5: the output is transposed
// shows: R=5 C=5
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R, C)
extern "C" __global__ void twice(const float *x, float *y, int r, int c) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < r * c)
        y[i] = 2 * x[r == c ? i % c * c + i / c : i];
}
