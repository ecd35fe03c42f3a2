// expect: race
// expect-cuda: skip lanes of a warp run together there, and it passes
// row: 11
// why: __syncwarp()
// tries: lanes exchange values through shared memory without __syncwarp
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
static __device__ float relu_of(float v) {
    return v < 0.0f ? 0.0f : v;
}

extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x, other = i ^ 1;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (other < n)
        y[other] = relu_of(s[threadIdx.x ^ 1]);
}
