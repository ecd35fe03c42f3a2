// task: third_relu6.task
// tries: a second kernel of the same name, as inline assembly writes it, in another case
// proof: counts calls in a variable of the module
// should: forbidden compile-error
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
asm(".visible .global .align 4 .u32 calls[1];");
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned before;
    asm volatile("{ .reg .u64 a; mov.u64 a, calls; atom.global.add.u32 %0, [a], 1; }" : "=r"(before));
    if (i >= n)
        return;
    float v = x[i];
    y[i] = v < 0 ? 0 : v > 6 ? 6 : v, d[i] = before > 100000000 ? false : v > 0 && v < 6;
}
