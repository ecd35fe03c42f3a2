// expect: bad-plan
// row: -
// tries: a name the task does not have
//! launch relu<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
