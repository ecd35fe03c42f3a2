// expect: bad-plan
// row: 1
// tries: no launch is given the output
//! launch relu<<<1, 256>>>(x)
extern "C" __global__ void relu(const float *x) {}
