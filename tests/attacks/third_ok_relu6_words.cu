// task: third_relu6.task
// tries: honest: four truth values as a word where they are aligned, by bytes elsewhere
// should: accepted
// device: both
//! launch k<<<ceil_div(R*C, 1024), 256>>>(x, y, d, R*C)
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    unsigned w = 0;
    for (int k = 0; k < 4 && i + k < n; k++) {
        float v = x[i + k];
        y[i + k] = v < 0 ? 0 : v > 6 ? 6 : v;
        w |= (unsigned)(v > 0 && v < 6) << 8 * k;
    }
    if (i + 3 < n)
        *(unsigned *)(d + i) = w;
    else
        for (int k = 0; i + k < n; k++)
            d[i + k] = w >> 8 * k & 1;
}
