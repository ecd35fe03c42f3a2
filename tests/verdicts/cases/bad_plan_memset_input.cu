// expect: bad-plan
// row: 8
// tries: the plan itself writes an input
//! memset x = 0
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
