// expect: unwritten
// row: 1
// tries: leaves an integer output as it was, where any bits are a number
// task: ../../tasks/kernelbench/level1/051_argmax_reduction.task
// set: B=4 M=64 N=63
//! launch nothing<<<1, 32>>>(x, y)
extern "C" __global__ void nothing(const float *x, long long *y) {}
