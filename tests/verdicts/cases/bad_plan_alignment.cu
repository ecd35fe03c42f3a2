// expect: bad-plan
// row: 10
// tries: an alignment that would move the content away from the end of its pages
//! require aligned(x, 4096)
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {}
