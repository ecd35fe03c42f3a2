// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: honest: a table of constants is read, and a local array in an inner block has a name of its own
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
__constant__ float table[4] = {0, 0, 0, 0};
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float low = table[n & 3];
    asm volatile("{\n.local .align 4 .f32 aside;\nst.local.f32 [aside], %0;\n"
                 "ld.local.f32 %0, [aside];\n}" : "+f"(low));
    if (i < n)
        y[i] = x[i] < low ? low : x[i];
}
