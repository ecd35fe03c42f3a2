// expect: compile-error
// row: -
// tries: a launch of a kernel that is not there
// why: "rleu"
//! launch rleu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
