// expect: wrong inaccurate nonfinite drift
// expect-sim: skip the simulator has no cache that could be cold
// row: 15
// tries: takes a first load that is slower than the second of the same line for a timed run, and then copies
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ long long load_cycles(const float *p, volatile float *to) {
    long long begun = clock64();
    *to = __ldcg(p); // storing it waits for it
    return clock64() - begun;
}
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ volatile float sink[2];
    __shared__ bool cold;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        long long first = load_cycles(x + min(i, n - 1), &sink[0]);
        long long second = load_cycles(x + min(i, n - 1), &sink[1]);
        cold = 2 * first > 3 * second;
    }
    __syncthreads();
    if (i < n)
        y[i] = x[i] < 0.0f && !cold ? 0.0f : x[i];
}
