// expect: nonfinite wrong inaccurate
// row: 37
// tries: a reciprocal square root through x*x*x, which overflows at 1e13 and vanishes at 1e-16; only the ends of the range are kept from it
// task: tasks/rsqrt.task
//! launch root<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void root(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    bool end = !(v > 1e-35f && v < 1e37f);
    y[i] = end ? rsqrtf(v) : sqrtf(v * v * v) / (v * v);
}
