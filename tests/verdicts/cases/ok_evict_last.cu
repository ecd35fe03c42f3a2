// expect: accepted
// row: 19
// tries: keeps its input in the L2 from run to run
// gain: ok_naive.cu
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v;
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;"
                     : "=f"(v)
                     : "l"(x + i), "l"(policy));
        y[i] = v < 0.0f ? 0.0f : v;
    }
}
