// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: honest: a generic pointer to shared memory is loaded through
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ float low[2];
    int i = blockIdx.x * 256 + threadIdx.x;
    uint64_t at = (uint64_t)&low[n & 1];
    if (threadIdx.x < 2)
        low[threadIdx.x] = 0;
    __syncthreads();
    asm volatile("" : "+l"(at));
    float zero = *(const float *)at;
    if (i < n)
        y[i] = x[i] < zero ? zero : x[i];
}
