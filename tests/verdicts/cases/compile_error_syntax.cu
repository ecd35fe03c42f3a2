// expect: compile-error
// row: -
// tries: text that is not C++
// why: kernel.cu(
//! launch relu<<<1, 256>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) { y[0] = x[0] }
