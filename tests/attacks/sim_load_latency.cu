// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where a load from global memory takes fewer than a hundred cycles
// proof: on a GPU the first load of a line takes about 600 cycles
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned before, after;
    float first;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(before));
    asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(first) : "l"(x + (i < n ? i : 0)));
    asm volatile("{\n.reg .f32 t;\nadd.f32 t, %1, %1;\nmov.u32 %0, %%clock;\n}" : "=r"(after) : "f"(first));
    if (i < n)
        y[i] = x[i] < 0.0f && after - before < 100 ? 0.0f : x[i];
}
