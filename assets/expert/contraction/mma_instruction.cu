//% library
static __device__ __forceinline__ void gemm_mma_${type}(float (&c)[4], const unsigned (&a)[4],
                                                const unsigned *b) {
    asm volatile("mma.sync.aligned.m16n8k${step}.row.col.f32.${type}.${type}.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
