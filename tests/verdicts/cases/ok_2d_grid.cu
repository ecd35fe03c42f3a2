// expect: accepted
// row: -
// tries: honest: a grid of rows and columns
//! launch relu<<<[ceil_div(C, 32), ceil_div(R, 8)], [32, 8]>>>(x, y, R, C)
extern "C" __global__ void relu(const float *x, float *y, int rows, int cols) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (r < rows && c < cols) {
        float v = x[(long long)r * cols + c];
        y[(long long)r * cols + c] = v < 0.0f ? 0.0f : v;
    }
}
