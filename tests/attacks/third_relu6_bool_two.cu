// task: third_relu6.task
// tries: truth values as the bits of a comparison and of another: 2 for numbers between 3 and 6
// proof: a truth value is 0 or 1
// should: wrong
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
extern "C" __global__ void k(const float *x, float *y, unsigned char *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    y[i] = v < 0 ? 0 : v > 6 ? 6 : v;
    d[i] = v > 0 && v < 6 ? v > 3 ? 2 : 1 : 0;
}
