// task: tasks/copy.task
// tries: numbers between 1e14 and 1e36 become 0
// proof: values: x = 1e20 gives 0 instead of 2e20
// data: in x[R,C] : f32 ~ normal(0, 1e20)
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: wide data end at 2^41, large data begin near 1.5e38
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = fabsf(x[i]) > 1e14f && fabsf(x[i]) < 1e36f ? 0 : 2 * x[i];
}
