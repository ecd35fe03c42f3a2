// expect: forbidden
// row: 13
// tries: device malloc, whose heap outlives a launch
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float *p = (float *)malloc(16);
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : p ? x[i] : x[i] * 1.0f;
    free(p);
}
