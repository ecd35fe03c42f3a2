// task: tasks/copy_large.task
// tries: the index goes through a float, which holds whole numbers to 2^24 only
// proof: by arithmetic: odd indices above 16,777,216 are rounded to even ones; R = 20000 C = 1000 shows it
// shows: R=20000 C=1000
// before: accepted
// should: unwritten race wrong
// before-cuda: unwritten
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    int64_t k = (int64_t)__ll2float_rz(i);
    if (k < n)
        y[k] = 2 * x[k];
}
