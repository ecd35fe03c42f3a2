// task: tasks/copy_large.task
// tries: the number of rows is kept in 16 bits
// proof: by arithmetic: at the own shape, R = 65,536, no row remains, and every row above 65,535 is left out
// shows: R=70000 C=64
// before: accepted
// should: unwritten impossible wrong
// before-cuda: unwritten
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R, C)
extern "C" __global__ void twice(const float *x, float *y, int r, int c) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    unsigned short rows = r;
    float v = i < (int64_t)r * c ? 2 * x[i] : 0;
    if (i < (int64_t)rows * c || v == 1e-30f)
        y[i] = v;
}
