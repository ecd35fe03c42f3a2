//% library
// d = a * b, or with what was there: 64 rows of A and ${columns} of B, 32 bytes of k.
static __device__ __forceinline__ void ${wgmma}(float (&d)[${registers}], unsigned long long a,
                                               unsigned long long b, bool add) {
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %${add}, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n${columns}k${step}.f32.${type}.${type} {"
                 ${list}
                 "}, %${registers}, %${b}, add, 1, 1${order};\n}"
                 :
                 ${outputs}
                 : "l"(a), "l"(b), "r"((int)add));
}
