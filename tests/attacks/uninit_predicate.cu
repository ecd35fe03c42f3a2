// task: tasks/copy.task
// tries: a register is written only where the element is not zero, by an instruction with a guard, and read for all
// proof: by PTX: where the guard is false the register holds what was there before; an element of 0 shows it
// before: accepted
// should: uninitialised wrong nonfinite
// before-cuda: wrong or accepted, by what the register held
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v;
    asm volatile("{\n.reg .pred some;\n.reg .b32 r;\nsetp.neu.f32 some, %1, 0f00000000;\n"
                 "@some mov.b32 r, %1;\nmov.b32 %0, r;\n}" : "=f"(v) : "f"(x[i]));
    y[i] = 2 * (v != v && !(x[i] != x[i]) ? 0.0f : v);
}
