// expect: launch-error
//! launch relu<<<1, 2048>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {}
