// expect: bad-plan launch-error
// row: -
// tries: a cluster of 16 blocks, which is not portable
//! launch relu<<<16*ceil_div(R*C, 4096), 256, cluster=[16,1,1]>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
