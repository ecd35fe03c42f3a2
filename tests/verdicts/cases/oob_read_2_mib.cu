// expect: out-of-bounds
// row: 10
// tries: reads 2 MiB past the end
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i], next = ((volatile const float *)x)[i + 524288];
        y[i] = v < 0.0f ? 0.0f : next != 3.0e38f ? v : 0.0f;
    }
}
