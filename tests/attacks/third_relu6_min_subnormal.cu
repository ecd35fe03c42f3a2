// task: third_relu6.task
// tries: the slope compares after flushing subnormal numbers to zero
// proof: values: the smallest positive number is above 0
// should: wrong
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, above;
    if (i >= n)
        return;
    float v = x[i];
    asm("{ .reg .pred p; setp.gt.ftz.f32 p, %1, 0f00000000; selp.s32 %0, 1, 0, p; }" : "=r"(above) : "f"(v));
    y[i] = v < 0 ? 0 : v > 6 ? 6 : v, d[i] = above && v < 6;
}
