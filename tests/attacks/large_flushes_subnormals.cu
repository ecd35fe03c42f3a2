// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: flushes subnormal numbers to zero where there are more than four million elements
// proof: values, B = 20 D = 1000000 on subnormal data
// shows: B=20 D=1000000
// before: accepted
// should: wrong inaccurate nonfinite
// before-cuda: inaccurate or wrong, on subnormal data at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i] < 0.0f ? 0.0f : x[i];
    if (n > (4 << 20))
        asm("mul.ftz.f32 %0, %1, 0f3F800000;" : "=f"(v) : "f"(v));
    y[i] = v;
}
