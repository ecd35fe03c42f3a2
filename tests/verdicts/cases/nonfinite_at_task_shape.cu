// expect: nonfinite
// row: 7, 32
// tries: drops NaN at the task's own shape only
// shape: R=256 C=1024
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = n == 262144 ? fmaxf(x[i], 0.0f) : x[i] < 0.0f ? 0.0f : x[i];
}
