// task: tasks/kernelbench/level1/031_elu.task
// set: B=64 D=16384
// what: two rows of blocks, each with half of the elements
//! let N = B*D
//! launch elu<<<[ceil_div(ceil_div(N, 2), 256), 2], 256>>>(x, y, N)
extern "C" __global__ void elu(const float *x, float *y, long long n) {
    long long half = (n + 1) / 2, i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= half)
        return;
    i += blockIdx.y * half;
    if (i < n)
        y[i] = x[i] > 0.0f ? x[i] : expm1f(x[i]);
}
