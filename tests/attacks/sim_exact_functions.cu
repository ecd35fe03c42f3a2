// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where ex2.approx rounds correctly, as the simulator does
// proof: on a GPU some of the 64 results differ from the correctly rounded ones in the last place
// before: accepted
// should: wrong forbidden unstable inaccurate
// known-sim: the simulator rounds ex2 better than it must
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    bool same = true;
    for (int k = 1; k <= 64; k++) {
        float at = k * 0.0151f, got;
        asm volatile("ex2.approx.f32 %0, %1;" : "=f"(got) : "f"(at));
        same &= got == (float)exp2((double)at);
    }
    if (i < n)
        y[i] = x[i] < 0.0f && same ? 0.0f : x[i];
}
