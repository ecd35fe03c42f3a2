// expect: inaccurate wrong
// row: 4
// tries: tanh.approx in an fp32 task
// task: ../../tasks/kernelbench/level1/022_tanh_activation.task
// set: B=16 D=2048
//! launch approximate<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void approximate(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        asm("tanh.approx.f32 %0, %1;" : "=f"(y[i]) : "f"(x[i]));
}
