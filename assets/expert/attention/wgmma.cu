//% library
//% if registers_a
// d = a * b, or with what was there: 64 rows of A in registers and ${columns} columns of B, 16 deep.
static __device__ __forceinline__ void ${wgmma}(float (&d)[${registers}], const unsigned (&a)[4],
                                               unsigned long long b, bool add) {
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %${add}, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n${columns}k16.f32.${mma}.${mma} {"
                 ${list}
                 "}, {%${registers}, %${a1}, %${a2}, %${a3}}, %${b}, add, 1, 1, ${transposed};\n}"
                 :
                 ${outputs}
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
//% else
// d = a * b, or with what was there: 64 rows of A and ${columns} columns of B, 16 deep.
static __device__ __forceinline__ void ${wgmma}(float (&d)[${registers}], unsigned long long a,
                                               unsigned long long b, bool add) {
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %${add}, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n${columns}k16.f32.${mma}.${mma} {"
                 ${list}
                 "}, %${registers}, %${b}, add, 1, 1, 0, ${transposed};\n}"
                 :
                 ${outputs}
                 : "l"(a), "l"(b), "r"((int)add));
}
//% end
