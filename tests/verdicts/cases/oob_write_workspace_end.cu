// expect: out-of-bounds
// row: 9
// tries: writes one element past the end of a workspace
//! workspace part[256] : f32
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, part, y, R*C)
extern "C" __global__ void relu(const float *x, float *part, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (i == 0)
        part[256] = 1.0f;
}
