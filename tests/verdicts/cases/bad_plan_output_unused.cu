// expect: bad-plan
//! launch relu<<<1, 256>>>(x)
extern "C" __global__ void relu(const float *x) {}
