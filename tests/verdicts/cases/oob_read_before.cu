// expect: out-of-bounds
// expect-cuda: skip what lies before a buffer is mapped noise there; the simulator sees the read
// row: 10
// tries: reads one element before the start
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i], last = ((volatile const float *)x)[i - 1];
        y[i] = v < 0.0f ? 0.0f : last != 3.0e38f ? v : 0.0f;
    }
}
