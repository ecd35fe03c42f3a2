// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where %warpid is the number of the warp in its block
// proof: on a GPU %warpid is a slot of the SM, which several blocks share: of most blocks it differs
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned v;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(v));
    if (i < n)
        y[i] = x[i] < 0.0f && v == threadIdx.x / 32 ? 0.0f : x[i];
}
