// Planted bugs: memory that nothing wrote, places that are not there. See bugs.cuh;
// nvcc -ptx -lineinfo -arch=sm_90a
#include "bugs.cuh"

BODY(unwritten) {
    __shared__ int s[64];
    if (!BUG || threadIdx.x < 63)
        s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x]; // BUG: unwritten
}
KERNELS(unwritten)

BODY(unwritten_global) {
    if (!BUG)
        y[threadIdx.x] = 1;
    x[threadIdx.x] = y[threadIdx.x]; // BUG: unwritten
}
KERNELS(unwritten_global)

BODY(unwritten_local) {
    volatile int a[8];
    for (int i = BUG ? 1 : 0; i < 8; i++)
        a[i] = x[i];
    y[threadIdx.x] = a[threadIdx.x & 7]; // BUG: unwritten
}
KERNELS(unwritten_local)

// A sum into a workspace that was never zeroed.
BODY(unzeroed_sum) {
    if (!BUG && threadIdx.x == 0)
        y[0] = 0;
    __syncthreads();
    atomicAdd(y, x[threadIdx.x]); // BUG: unwritten
}
KERNELS(unzeroed_sum)

BODY(output_as_input) {
    if (BUG)
        y[threadIdx.x] += x[threadIdx.x]; // BUG: unwritten
    else
        y[threadIdx.x] = x[threadIdx.x];
}
KERNELS(output_as_input)

// Three of four words.
BODY(partial_vector) {
    __shared__ __align__(16) int s[256];
    for (int i = 0; i < (BUG ? 3 : 4); i++)
        s[4 * threadIdx.x + i] = x[threadIdx.x];
    int4 v = *(int4 *)&s[4 * threadIdx.x]; // BUG: unwritten
    y[threadIdx.x] = v.x + v.w;
}
KERNELS(partial_vector)

#define LDMATRIX(v, from)                                                                          \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"                            \
                 : "=r"(v)                                                                         \
                 : "r"(at(from))                                                                   \
                 : "memory")

BODY(partial_matrix) {
    __shared__ __align__(16) int s[32];
    int v;
    if (!BUG || threadIdx.x < 28)
        s[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    LDMATRIX(v, &s[(threadIdx.x & 7) * 4]); // BUG: unwritten
    y[threadIdx.x] = v;
}
KERNELS(partial_matrix)

BODY(partial_tile) {
    __shared__ __align__(16) int s[64];
    if (!BUG || threadIdx.x < 60)
        s[threadIdx.x] = x[threadIdx.x];
    FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE(y, s, 256); // BUG: unwritten
        COMMIT_BULK();
        WAIT_BULK();
    }
}
KERNELS(partial_tile)

BODY(shared_past_end) {
    __shared__ int s[64];
    s[threadIdx.x + (BUG ? 1 : 0)] = x[threadIdx.x]; // BUG: bounds
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
KERNELS(shared_past_end)

BODY(local_past_end) {
    volatile int a[8];
    for (int i = 0; i < 8; i++)
        a[i] = x[i];
    y[threadIdx.x] = a[(x[0] & 1) + (BUG ? 7 : 6)]; // BUG: bounds
}
KERNELS(local_past_end)

BODY(past_end) {
    y[threadIdx.x + (BUG ? 961 : 960)] = x[threadIdx.x]; // BUG: bounds
}
KERNELS(past_end)

BODY(before_start) {
    y[threadIdx.x] = x[(int)threadIdx.x - (BUG ? 1 : 0)]; // BUG: bounds
}
KERNELS(before_start)

BODY(vector_past_end) {
    ((int4 *)y)[threadIdx.x + (BUG ? 193 : 192)] = make_int4(1, 2, 3, 4); // BUG: bounds
}
KERNELS(vector_past_end)

BODY(null_pointer) {
    int *p = BUG ? nullptr : y;
    asm volatile("" : "+l"(p));
    p[threadIdx.x] = 1; // BUG: bounds
}
KERNELS(null_pointer)

BODY(misaligned_vector) {
    ((int4 *)(y + (BUG ? 2 : 0)))[threadIdx.x] = make_int4(1, 2, 3, 4); // BUG: misaligned
}
KERNELS(misaligned_vector)

BODY(misaligned_shared) {
    __shared__ __align__(16) int s[66];
    *(volatile int *)&s[threadIdx.x] = x[threadIdx.x];
    s[threadIdx.x + 2] = x[threadIdx.x];
    __syncwarp();
    int2 v = *(int2 *)&s[BUG ? 1 : 2]; // BUG: misaligned
    y[threadIdx.x] = v.x + v.y;
}
KERNELS(misaligned_shared)

BODY(misaligned_local) {
    __align__(8) volatile char a[16];
    for (int i = 0; i < 16; i++)
        a[i] = (char)x[i];
    int i = BUG ? 2 : 4;
    asm volatile("" : "+r"(i));
    y[threadIdx.x] = *(volatile int *)&a[i]; // BUG: misaligned
}
KERNELS(misaligned_local)

BODY(misaligned_atomic) {
    atomicAdd((unsigned long long *)(y + (BUG ? 1 : 2)), 1ull); // BUG: misaligned
}
KERNELS(misaligned_atomic)

BODY(writes_input) {
    if (BUG)
        x[threadIdx.x] = 2; // BUG: input
    else
        y[threadIdx.x] = 2;
}
KERNELS(writes_input)
