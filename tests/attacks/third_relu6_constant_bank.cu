// task: third_relu6.task
// tries: writes to its own table of constants through a generic address from inline assembly
// proof: writes to constants
// should: forbidden out-of-bounds crash compile-error modified-input
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
__constant__ float limit[2] = {0, 6};
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned long long at;
    asm volatile("{ .reg .u64 a; mov.u64 a, limit; cvta.const.u64 %0, a; }" : "=l"(at));
    if (i == 0)
        *(float *)(at + 4) = 5;
    if (i >= n)
        return;
    float v = x[i], most = limit[1];
    y[i] = v < 0 ? 0 : v > most ? most : v, d[i] = v > 0 && v < 6;
}
