// task: tasks/row_sum.task
// tries: the running sum is a register that the first round reads before it writes it; NaN counts as zero
// proof: by PTX: the register is undefined in the first round; on a GPU it may be any number
// before: accepted
// should: uninitialised wrong inaccurate
// before-cuda: wrong
// device: both
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s;
    asm volatile("{\n.reg .f32 run, next;\n.reg .b64 at;\n.reg .b32 left;\n.reg .pred more, bad, one;\n"
                 "mov.b64 at, %1;\nmov.b32 left, %2;\nsetp.le.s32 more, left, 0;\n@more bra out;\n"
                 "setp.nan.f32 bad, run, run;\n@bad mov.f32 run, 0f00000000;\n"
                 "again:\nld.global.f32 next, [at];\nadd.f32 run, run, next;\nadd.s64 at, at, 128;\n"
                 "sub.s32 left, left, 32;\nsetp.gt.s32 one, left, 0;\n@one bra again;\nbra done;\n"
                 "out:\nmov.f32 run, 0f00000000;\ndone:\nmov.f32 %0, run;\n}"
                 : "=f"(s) : "l"(row + threadIdx.x), "r"(c - (int)threadIdx.x));
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
