// expect: out-of-bounds
// row: 23
// tries: writes to address zero
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    *(volatile int *)(unsigned long long)(n & 0x40000000) = n;
}
