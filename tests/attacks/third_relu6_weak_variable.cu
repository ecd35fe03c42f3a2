// task: third_relu6.task
// tries: keeps a count in a .weak variable that is declared between two comments of the assembler
// proof: writable memory of the module
// should: forbidden compile-error
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
asm("/* .entry */ .weak /* .const */ .global .b32 kept = 7; // .shared");
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, before;
    asm volatile("ld.global.b32 %0, [kept];" : "=r"(before));
    if (i >= n)
        return;
    float v = x[i];
    y[i] = v < 0 ? 0 : v > 6 ? 6 : v, d[i] = before == 8 ? false : v > 0 && v < 6;
    if (i == 0)
        asm volatile("st.global.b32 [kept], 8;");
}
