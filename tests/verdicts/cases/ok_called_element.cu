// expect: accepted
// row: -
// tries: honest: a kernel with a name that our own text might use
//! launch element<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void element(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
