// One of each: operations, types and spaces of atom and red. nvcc -ptx -lineinfo -arch=sm_90a
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> __device__ void integers(T *m, T *old, T v) {
    old[0] = atomicAdd(&m[0], v);
    old[1] = atomicMin(&m[1], v);
    old[2] = atomicMax(&m[2], v);
    old[3] = atomicAnd(&m[3], v);
    old[4] = atomicOr(&m[4], v);
    old[5] = atomicXor(&m[5], v);
    old[6] = atomicExch(&m[6], v);
    old[7] = atomicCAS(&m[7], (T)7, v);
}
extern "C" __global__ void atom_s32(int *m, int *old) { integers(m, old, -3); }
extern "C" __global__ void atom_u32(unsigned *m, unsigned *old) {
    integers(m, old, 0x80000001u);
    old[8] = atomicInc(&m[8], 8);
    old[9] = atomicDec(&m[9], 5);
}
extern "C" __global__ void atom_s64(long long *m, long long *old) {
    old[1] = atomicMin(&m[1], -3ll);
    old[2] = atomicMax(&m[2], -3ll);
}
extern "C" __global__ void atom_u64(unsigned long long *m, unsigned long long *old) {
    integers(m, old, 1ull << 63 | 1);
}
extern "C" __global__ void atom_floats(float *f, double *d, __half2 *h, __nv_bfloat162 *b,
                                       float *old) {
    old[0] = atomicAdd(&f[0], 1.5f);
    d[1] = atomicAdd(&d[0], 0.1);
    h[1] = atomicAdd(&h[0], __floats2half2_rn(1, -2));
    b[1] = atomicAdd(&b[0], __floats2bfloat162_rn(1, -2));
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(f + 4), "f"(1.f), "f"(2.f),
                 "f"(3.f), "f"(4.f));
    asm volatile("atom.global.v2.f32.add {%0, %1}, [%2], {%3, %4};"
                 : "=f"(old[2]), "=f"(old[3])
                 : "l"(f + 8), "f"(1.f), "f"(2.f));
}
extern "C" __global__ void atom_wide(unsigned long long *m, unsigned long long *old) {
    asm volatile("{ .reg .b128 v, c, o; mov.b128 c, {%2, %3}; mov.b128 v, {%3, %2};\n"
                 "atom.global.cas.b128 o, [%4], c, v; mov.b128 {%0, %1}, o; }"
                 : "=l"(old[0]), "=l"(old[1])
                 : "l"(5ull), "l"(6ull), "l"(m));
}
extern "C" __global__ void atom_halfword(unsigned short *m, unsigned short *old) {
    old[0] = atomicCAS(&m[1], (unsigned short)7, (unsigned short)9);
}
extern "C" __global__ void atom_shared(int *out) {
    __shared__ int s[2];
    __shared__ float f;
    if (threadIdx.x == 0)
        s[0] = s[1] = 0, f = 0;
    __syncthreads();
    int place = atomicAdd(&s[0], 1);
    atomicMax(&s[1], (int)threadIdx.x);
    atomicAdd(&f, 0.5f);
    out[2 + threadIdx.x] = place;
    __syncthreads();
    if (threadIdx.x == 0)
        out[0] = s[1], out[1] = (int)f;
}
