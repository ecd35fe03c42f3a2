// expect: bad-plan
//! launch relu<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
