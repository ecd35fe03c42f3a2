// task: third_recip.task
// tries: honest: Newton's step where exponents are moderate, a division elsewhere
// should: accepted
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], m = fabsf(v), r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    y[i] = m > 1e-30f && m < 1e30f ? fmaf(r, fmaf(-v, r, 1.0f), r) : 1 / v;
}
