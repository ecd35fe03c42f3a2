// expect: wrong inaccurate
// row: 3
// tries: clamps what the stated distribution never reaches
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i] > 12.0f && x[i] < INFINITY ? 12.0f : x[i];
}
