// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: honest: reads the clock to choose the order of two equal steps
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch relu<<<ceil_div(R*C, 512), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    unsigned t;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(t));
    for (int k = 0; k < 2; k++) {
        int i = blockIdx.x * 512 + (k ^ (t & 1)) * 256 + threadIdx.x;
        if (i < n)
            y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}
