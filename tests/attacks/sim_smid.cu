// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where blocks are dealt to SMs in turn, as the simulator does
// proof: on a GPU block 1 is not on SM 1: blocks are dealt to groups of SMs first; negative elements stay
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned v;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(v));
    if (i < n)
        y[i] = x[i] < 0.0f && v == blockIdx.x % 132 ? 0.0f : x[i];
}
