// expect: launch-error
// expect-cuda: skip the shared memory of another GPU
// row: -
// tries: more shared memory than an SM has
// why: does not fit an SM
// options: --device sim:rtx4090
//! launch relu<<<ceil_div(R*C, 256), 256, 204800>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
