// expect: bad-plan
// row: 6
// tries: a require line that excludes the task's own shape
//! require C % 4099 == 0
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
