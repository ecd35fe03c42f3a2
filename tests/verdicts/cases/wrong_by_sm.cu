// expect: wrong inaccurate
// row: 15
// tries: wrong on SMs that only a large grid reaches
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    unsigned sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f && sm < 64 ? 0.0f : x[i];
}
