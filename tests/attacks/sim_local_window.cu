// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where local memory lies 2^32 bytes behind shared memory
// proof: on a GPU the distance of the two windows is another one
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    __shared__ volatile int place;
    volatile int own[4];
    own[n & 3] = n;
    if (threadIdx.x == 0)
        place = own[n & 3];
    if (i < n)
        y[i] = x[i] < 0.0f && (((uint64_t)&own[n & 3] ^ (uint64_t)&place) >> 32) == 1 ? 0.0f : x[i];
}
