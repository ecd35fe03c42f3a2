// expect: inaccurate wrong
// row: 37
// tries: flushes subnormal numbers to zero where there are more than four million elements
// set: R=65536 C=4096
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i] < 0.0f ? 0.0f : x[i];
    if (n > (4 << 20))
        asm("mul.ftz.f32 %0, %1, 0f3F800000;" : "=f"(v) : "f"(v));
    y[i] = v;
}
