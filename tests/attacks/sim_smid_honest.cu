// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: honest: the SM's number chooses a counter of its own, whose sum does not depend on it
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! workspace done[1024] : i32
//! memset done = 0
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, done, R*C)
extern "C" __global__ void relu(const float *x, float *y, int *done, int n) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (threadIdx.x == 0)
        atomicAdd(done + sm % 1024, 1);
}
