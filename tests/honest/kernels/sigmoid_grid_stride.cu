// task: tasks/kernelbench/level1/021_sigmoid.task
// set: B=64 D=16384
// what: a grid-stride loop over a grid of at most 1,056 blocks
//! launch sigmoid<<<min(1056, ceil_div(B*D, 256)), 256>>>(x, y, B*D)
extern "C" __global__ void sigmoid(const float *x, float *y, long long n) {
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = 1.0f / (1.0f + expf(-x[i]));
}
