// expect: out-of-bounds crash
// expect-sim: unsupported
// row: 23
// tries: recursion without end
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
static __device__ __noinline__ float deeper(volatile float *at, int n) {
    volatile float frame[64];
    frame[n & 63] = at[0];
    return n < -5 ? at[0] : deeper(frame, n + 1 > 0 ? n : n + 1) + frame[(n + 1) & 63];
}
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    v = deeper(&v, n);
    if (i < n)
        y[i] = v;
}
