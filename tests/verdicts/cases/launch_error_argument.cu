// expect: launch-error
// row: -
// tries: an argument that its parameter cannot hold
// why: argument 3: 3000000000 does not fit
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, 3000000000)
extern "C" __global__ void relu(const float *x, float *y, unsigned n) {}
