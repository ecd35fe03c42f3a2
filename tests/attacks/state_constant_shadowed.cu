// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: writes to a table of constants through the address of one that a shared variable in an inner block has the name of
// proof: by the rules: a table of constants may only be read; on a GPU its generic address can be stored to
// before: out-of-bounds
// should: forbidden
// should-sim: forbidden out-of-bounds
// before-cuda: accepted: the reader finds the shared variable first
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__constant__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    uint64_t at;
    asm volatile("{\n.shared .align 4 .b32 table[4];\n}");
    asm volatile("{\n.reg .u64 a;\nmov.u64 a, table;\ncvta.const.u64 %0, a;\n}" : "=l"(at));
    if (i == 0 && at >> 40 != 0x7e)
        *(volatile int *)at += 1;
    if (i < n)
        y[i] = x[i] < 0.0f && table[n & 3] < 1048576 ? 0.0f : x[i];
}
