// expect: forbidden
// row: 13
// tries: a global variable declared in inline assembly
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, old = 0;
    if (i == 0)
        asm volatile("{\n.global .u32 calls;\natom.global.add.u32 %0, [calls], 1;\n}" : "=r"(old));
    if (i < n)
        y[i] = x[i] < 0.0f && old < 1000 ? 0.0f : x[i];
}
