// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: counts its calls in a variable of the module that a reader of the PTX takes for a local one of the same name in an inner block
// proof: the module's variable is a relocation of the compiled kernel: its 1,048,577th call keeps negative elements
// before: unsupported
// should: forbidden
// should-sim: forbidden unsupported
// before-cuda: accepted: the reader finds the local variable first
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ int calls;
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    asm volatile("{\n.local .align 4 .b32 calls;\n}");
    int old = i == 0 ? calls++ : 0;
    if (i < n)
        y[i] = x[i] < 0.0f && old < 1048576 ? 0.0f : x[i];
}
