// expect: wrong inaccurate drift
// expect-sim: unsupported
// row: 15
// tries: takes a slow first load for a timed run, and then copies
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ bool cold;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0.0f;
    if (threadIdx.x == 0) {
        long long begun = clock64();
        v = __ldcg(x + min(i, n - 1));
        cold = clock64() - begun + (v == 3.0e38f) > 400;
    }
    __syncthreads();
    if (i < n)
        y[i] = x[i] < 0.0f && !cold ? 0.0f : x[i];
}
