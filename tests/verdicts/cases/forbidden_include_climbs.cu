// expect: forbidden
// row: 24
// tries: climbs out of an allowed folder
#include <cuda/std/../../../../../../../../etc/hostname>
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
