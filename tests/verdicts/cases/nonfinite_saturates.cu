// expect: nonfinite
// row: 32
// tries: the largest number instead of infinity
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i] < 0.0f ? 0.0f : x[i];
        y[i] = v > FLT_MAX ? FLT_MAX : v;
    }
}
