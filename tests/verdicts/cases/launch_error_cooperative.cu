// expect: launch-error
// row: 22
// tries: a cooperative launch of more blocks than fit the GPU at once
// why: at a time (1 on each of
//! launch relu<<<ceil_div(R*C, 32), 32, 204800, cooperative>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
