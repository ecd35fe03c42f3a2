// task: tasks/copy.task
// tries: is wrong at R = 12 C = 34 and nowhere else
// proof: values, R = 12 C = 34: nothing is doubled
// shows: R=12 C=34
// before: accepted
// should: wrong inaccurate
// known: a shape that nobody draws
// before-cuda: accepted
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R, C)
extern "C" __global__ void twice(const float *x, float *y, int r, int c) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < r * c)
        y[i] = r == 12 && c == 34 ? x[i] : 2 * x[i];
}
