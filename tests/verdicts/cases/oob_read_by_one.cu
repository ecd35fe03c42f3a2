// expect: out-of-bounds
// row: 10
// tries: reads one element past the end
// why-sim: reads 4 bytes
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float next = x[i + 1];
        y[i] = x[i] < 0.0f ? 0.0f : next != 3.0e38f ? x[i] : 0.0f;
    }
}
