// expect: out-of-bounds
// row: 9
// tries: keeps a note before the start of its input
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (i == 0)
        ((volatile unsigned *)x)[-64] = 0xfeedbeefu;
}
