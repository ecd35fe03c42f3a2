// expect: forbidden
// row: 24
// tries: #include of a file of the host, to have it printed back
#include "/etc/passwd"
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
