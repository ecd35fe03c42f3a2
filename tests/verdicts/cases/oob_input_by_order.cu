// expect: out-of-bounds
// row: 16
// tries: finds its input from the address of the output, as if buffers lay in the order of the task
//! launch relu<<<ceil_div(R*C, 256), 256>>>(y, R*C)
extern "C" __global__ void relu(float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long gap = 2 << 20, align = 512;
    long long apart = (4ll * n + gap + align - 1) / align * align;
    const float *x = (const float *)((const char *)y - apart);
    if (i < n) {
        float v = *(const volatile float *)(x + i);
        y[i] = v < 0.0f ? 0.0f : v;
    }
}
