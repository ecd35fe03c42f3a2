//% library
// Tensor cores cut off what TF32 does not hold: round first.
static __device__ __forceinline__ unsigned gemm_tf32(float x) {
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}
