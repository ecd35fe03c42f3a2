// expect: nonfinite wrong
// row: 34
// tries: infinities become the largest number where the grid has more than 100,000 blocks
// set: R=65536 C=4096
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i] < 0.0f ? 0.0f : x[i];
    y[i] = gridDim.x > 100000 ? fminf(fmaxf(v, -FLT_MAX), FLT_MAX) : v;
}
