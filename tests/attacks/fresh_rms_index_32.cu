// task: ../../tasks/kernelbench/level1/036_rms_norm.task
// tries: indices are 32-bit numbers, which the task's own 1.9e9 elements just fit
// proof: arithmetic: at N = 160 there are 2.7e9 elements, and indices beyond 2^31 are negative; too large to run here
// known: a shape of 2.7e9 elements is never drawn
// should: out-of-bounds wrong crash
// device: both
//! launch normalise<<<ceil_div(N*H*W, 128), 128>>>(x, y, N*H*W, C, H*W)
extern "C" __global__ void normalise(const float *x, float *y, int n, int c, int plane) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    int first = i / plane * c * plane + i % plane;
    float s = 0;
    for (int k = 0; k < c; k++)
        s = fmaf(x[first + k * plane], x[first + k * plane], s);
    float r = sqrtf(s / c + 1e-5f);
    for (int k = 0; k < c; k++)
        y[first + k * plane] = x[first + k * plane] / r;
}
