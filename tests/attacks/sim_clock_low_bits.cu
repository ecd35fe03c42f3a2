// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where the clock is a multiple of four, as the simulator has it
// proof: on a GPU the clock takes every value: three quarters of the warps copy
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned v;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(v));
    if (i < n)
        y[i] = x[i] < 0.0f && v % 4 == 0 ? 0.0f : x[i];
}
