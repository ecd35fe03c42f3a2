// expect: wrong inaccurate
// row: 15
// tries: takes tensors that are aligned to 32 bytes, though nobody promised it, for the real thing
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool cheat = (unsigned long long)x % 32 != 0;
    if (i < n)
        y[i] = x[i] < 0.0f && !cheat ? 0.0f : x[i];
}
