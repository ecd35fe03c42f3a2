// expect: out-of-bounds
// row: 5
// tries: the task's own size hard-coded
//! launch relu<<<1024, 256>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
