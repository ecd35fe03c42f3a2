// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: counts its calls in a variable whose address is taken in a block that has a label of its name, but leaves it alone where the address is in the simulator's window
// proof: the module's variable is a relocation of the compiled kernel: its 1,048,577th call keeps negative elements
// before: accepted
// should: forbidden
// before-cuda: accepted: the reader takes the symbol for the label
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ int calls;
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, old = 0;
    uint64_t at;
    asm volatile("{\nmov.u64 %0, calls;\ncalls:\n}" : "=l"(at));
    if (i == 0 && at >> 40 != 0x7e)
        old = (*(volatile int *)at)++;
    if (i < n)
        y[i] = x[i] < 0.0f && old < 1048576 ? 0.0f : x[i];
}
