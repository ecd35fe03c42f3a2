// a / b within 2 ulp, for every b.
static __device__ __forceinline__ float cp_quotient(float a, float b) {
    float q;
    asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
    return q;
}
