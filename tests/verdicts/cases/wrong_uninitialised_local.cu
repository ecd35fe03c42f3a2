// expect: wrong inaccurate nonfinite
// expect-sim: uninitialised
// row: 12
// tries: adds local memory that nothing wrote
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    volatile float scratch[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n == 0x7fffffff) // never: the compiler cannot know
        scratch[threadIdx.x % 64] = 0.0f;
    if (i < n)
        y[i] = (x[i] < 0.0f ? 0.0f : x[i]) + scratch[(i + 5) % 64];
}
