// expect: out-of-bounds
// row: 16
// tries: writes where another run's output lies if memory is laid out in order
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] > 0 || x[i] != x[i] ? x[i] : 0;
    if (i == 0)
        *(volatile float *)((char *)y + 2 * ((char *)y - (char *)x)) = 1;
}
