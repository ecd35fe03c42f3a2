// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where a block has no shared memory but what it asked for
// proof: on a GPU of compute capability 9.0 each block has 1 KiB more, which the system reserves
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong, or accepted where the register does not count the reserved part
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned v;
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(v));
    if (i < n)
        y[i] = x[i] < 0.0f && v < 1024 ? 0.0f : x[i];
}
