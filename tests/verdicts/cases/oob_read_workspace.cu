// expect: out-of-bounds
// row: 10
// tries: reads past the end of a workspace
//! workspace part[1024] : f32
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, part, y, R*C)
extern "C" __global__ void relu(const float *x, float *part, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i], next = ((volatile float *)part)[1024 + threadIdx.x];
        y[i] = v < 0.0f ? 0.0f : next != 3.0e38f ? v : 0.0f;
    }
}
