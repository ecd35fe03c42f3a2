// task: tasks/copy.task
// tries: an odd number of columns beside an even number of rows, both above 4: the last element is not doubled
// proof: values, R = 6 C = 9
// shows: R=6 C=9
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: sizes of one shape are all odd or all powers of two
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R, C)
extern "C" __global__ void twice(const float *x, float *y, int r, int c) {
    int i = blockIdx.x * 256 + threadIdx.x;
    bool pairs = r > 4 && r % 2 == 0 && c > 4 && c % 2 == 1;
    if (i < r * c)
        y[i] = pairs && i == r * c - 1 ? x[i] : 2 * x[i];
}
