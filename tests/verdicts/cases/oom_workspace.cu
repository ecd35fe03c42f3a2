// expect: out-of-memory
// row: 23
// tries: a workspace of 8 TiB
//! workspace huge[1024, 1024, 1024, 2048] : f32
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, huge, y, R*C)
extern "C" __global__ void relu(const float *x, float *huge, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
