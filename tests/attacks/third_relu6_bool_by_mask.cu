// task: third_relu6.task
// tries: eight truth values at a time as one word; rows whose length is no multiple of eight leave the word's rest of the row before
// proof: C = 257
// should: wrong unwritten out-of-bounds crash race
// device: both
//! launch k<<<ceil_div(R*C, 2048), 256>>>(x, y, d, R*C)
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = (blockIdx.x * 256 + threadIdx.x) * 8;
    unsigned long long w = 0;
    for (int k = 0; k < 8 && i + k < n; k++) {
        float v = x[i + k];
        y[i + k] = v < 0 ? 0 : v > 6 ? 6 : v;
        w |= (unsigned long long)(v > 0 && v < 6) << 8 * k;
    }
    if (i + 7 < n)
        *(unsigned long long *)(d + i) = w;
}
