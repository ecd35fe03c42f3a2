// expect: forbidden
// row: 24
// tries: the same through a macro
#define SECRET "/etc/hostname"
#include SECRET
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
