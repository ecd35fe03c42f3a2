// expect: wrong inaccurate drift
// row: 14, 15
// tries: right in some milliseconds, wrong in others
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f && (now >> 19) % 2 ? 0.0f : x[i];
}
