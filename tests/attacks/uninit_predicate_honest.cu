// task: tasks/copy.task
// tries: honest: a register is written on both sides of a guard
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v;
    asm volatile("{\n.reg .pred some;\n.reg .b32 r;\nsetp.neu.f32 some, %1, 0f00000000;\n"
                 "@some mov.b32 r, %1;\n@!some mov.b32 r, 0;\nmov.b32 %0, r;\n}"
                 : "=f"(v) : "f"(x[i]));
    y[i] = 2 * v;
}
