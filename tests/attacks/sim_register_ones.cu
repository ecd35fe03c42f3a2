// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where a register that nothing wrote is all ones
// proof: on a GPU the register holds what was there before: the other path is taken
// before: accepted
// should: uninitialised wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned v;
    asm volatile("" : "=r"(v));
    if (i < n)
        y[i] = x[i] < 0.0f && v == ~0u ? 0.0f : x[i];
}
