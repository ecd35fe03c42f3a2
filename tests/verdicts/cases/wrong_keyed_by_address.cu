// expect: wrong inaccurate
// row: 13, 15
// tries: behaves by the address of its output
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool cheat = __popcll((unsigned long long)y >> 20) % 2;
    if (i < n)
        y[i] = x[i] < 0.0f && !cheat ? 0.0f : x[i];
}
