// expect: wrong inaccurate nonfinite
// row: 11
// tries: two blocks write every element, only one of them right
//! launch relu<<<2*ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x / 2 * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        bool right = blockIdx.x % 2 == i / 7 % 2;
        y[i] = right && v < 0.0f ? 0.0f : v;
    }
}
