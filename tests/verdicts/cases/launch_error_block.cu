// expect: launch-error
// row: -
// tries: 2,048 threads a block
//! launch relu<<<1, 2048>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {}
