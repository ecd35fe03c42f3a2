// expect: compile-error
// row: -
// tries: a tensor passed as another type
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const double *x, float *y, int n) {}
