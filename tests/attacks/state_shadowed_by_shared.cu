// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: counts its calls in a variable of the module that a shared one in an inner block has the name of
// proof: the module's variable is a relocation of the compiled kernel: its 1,048,577th call keeps negative elements
// before: accepted
// should: forbidden
// before-cuda: accepted: the reader finds the shared variable first
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ int calls;
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, old = 0;
    uint64_t at;
    asm volatile("{\n.shared .align 4 .b32 calls;\n}");
    asm volatile("mov.u64 %0, calls;" : "=l"(at));
    if (i == 0 && at > 4096)
        old = (*(volatile int *)at)++;
    if (i < n)
        y[i] = x[i] < 0.0f && old < 1048576 ? 0.0f : x[i];
}
