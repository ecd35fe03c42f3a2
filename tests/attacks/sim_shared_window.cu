// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where the window of shared memory begins at 0x7e0000000000
// proof: on a GPU the driver places the window elsewhere, and not at a multiple of 2^40 bytes
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    __shared__ int place;
    if (threadIdx.x == 0)
        place = n;
    if (i < n)
        y[i] = x[i] < 0.0f && ((uint64_t)&place & 0xffff00000000ull) == 0x7e0000000000ull ? 0.0f : x[i];
}
