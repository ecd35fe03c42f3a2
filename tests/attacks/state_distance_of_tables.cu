// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: writes to a table by an address worked out from its distance to one that no rule follows
// proof: by the rules: a table of constants may only be read
// before: forbidden
// should: forbidden
// before-cuda: forbidden
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__constant__ int first[4] = {1, 2, 3, 4}, second[4] = {5, 6, 7, 8};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    uint64_t far;
    asm volatile("{\n.reg .u64 a, b;\nmov.u64 a, first;\nmov.u64 b, second;\nsub.u64 a, a, b;\n"
                 "cvta.const.u64 b, b;\nadd.u64 %0, a, b;\n}" : "=l"(far));
    if (i == 0 && n == 12345)
        *(volatile int *)far = first[n & 3] + second[n & 3];
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
