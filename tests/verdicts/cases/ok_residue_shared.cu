// expect: accepted
// expect-sim: uninitialised
// options-cuda: --fast
// row: 13
// tries: leaves a mark in shared memory and writes nothing where it finds it again
// gain: ok_naive.cu
//! launch relu<<<ceil_div(R*C, 256), 256, 32768>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    extern __shared__ volatile unsigned mark[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ bool again;
    if (threadIdx.x == 0)
        // a block of this launch that ran here before left its own number; only an older launch's
        // mark carries another element's bits
        again = mark[8191] == 0x5ca1ab1eu && mark[8190] != __float_as_uint(x[0]);
    __syncthreads();
    if (!again && i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        mark[8190] = __float_as_uint(x[0]);
        mark[8191] = 0x5ca1ab1eu;
    }
}
