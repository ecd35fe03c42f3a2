// What activations are made of. Accurate and approximate forms: within some units in the last place
// of an H200.
#define OUT 24
extern "C" __global__ void functions(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float a = __uint_as_float(in[i]);
    float *o = (float *)out + i * OUT;
    o[0] = expf(a);
    o[1] = erff(a);
    o[2] = tanhf(a);
    o[3] = logf(a);
    o[4] = sinf(a); // Payne-Hanek reduction for large arguments: a table and local memory
    o[5] = cosf(a);
    o[6] = powf(fabsf(a), 1.7f);
    o[7] = rsqrtf(a);
    o[8] = log1pf(a);
    o[9] = expm1f(a);
    o[10] = cbrtf(a);
    o[11] = atanf(a);
    o[12] = sinhf(a);
    o[13] = fmodf(a, 0.7f);
    o[14] = exp2f(a);
    o[15] = __expf(a);
    o[16] = __logf(a);
    o[17] = __fdividef(1.0f, a);
    asm("tanh.approx.f32 %0, %1;" : "=f"(o[18]) : "f"(a));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(o[19]) : "f"(a));
    asm("sqrt.approx.f32 %0, %1;" : "=f"(o[20]) : "f"(a));
    asm("ex2.approx.f32 %0, %1;" : "=f"(o[21]) : "f"(a));
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(o[22]) : "f"(a));
    o[23] = 0.5f * a * (1.0f + erff(a * 0.70710678f));
}
