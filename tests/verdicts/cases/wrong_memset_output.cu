// expect: wrong inaccurate nonfinite
// row: 2
// tries: the plan writes the output, the kernel only takes it
//! memset y = 0
//! launch relu<<<1, 32>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {}
