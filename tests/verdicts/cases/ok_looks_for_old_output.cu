// expect: accepted
// expect-sim: uninitialised
// options-cuda: --fast
// row: 1
// tries: returns early where the output looks finished from an earlier run; it never does
// gain: ok_naive.cu
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || (y[i] >= 0.0f && y[n - 1] >= 0.0f && y[0] >= 0.0f))
        return;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
