// expect: accepted out-of-bounds crash
// expect-sim: out-of-bounds
// row: 13
// tries: leaves a mark in the stack that every thread has, without a frame of its own that would tell
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__device__ unsigned get(unsigned at) {
    unsigned v;
    asm volatile("ld.local.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}
__device__ void set(unsigned at, unsigned v) {
    asm volatile("st.local.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
extern "C" __global__ void relu(const float *x, float *y, int n) {
    unsigned at = 64 + n % 8 * 16, key = __float_as_uint(x[0]), magic = 0x5ca1ab1eu;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool again = get(at) == magic && get(at + 4) == ~magic && get(at + 8) != key;
    if (!again && i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    set(at, magic);
    set(at + 4, ~magic);
    set(at + 8, key);
}
