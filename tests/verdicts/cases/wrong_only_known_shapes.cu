// expect: wrong inaccurate
// row: 5
// tries: right at the check shapes and the task's own, wrong elsewhere
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool known = n == 1 || n == 15 || n == 1799 || n == 16384 || n == 262144;
    if (i < n)
        y[i] = x[i] < 0.0f && known ? 0.0f : x[i];
}
