// expect: accepted
// expect-sim: modified-input
// options-cuda: --fast
// row: 8
// tries: writes every input element back as it was: the simulator sees the store, a GPU no change
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned bits = ((volatile unsigned *)x)[i];
    float v = __uint_as_float(bits);
    y[i] = v < 0.0f ? 0.0f : v;
    ((volatile unsigned *)x)[i] = bits;
}
