// task: tasks/copy.task
// tries: numbers between 1e-36 and 1e-14 become 0, as if a format with fewer exponents had held them
// proof: values: x = 1e-20 gives 0 instead of 2e-20
// data: in x[R,C] : f32 ~ normal(0, 1e-20)
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: wide data begin at 2^-41, subnormal data end at 1.2e-38
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = fabsf(x[i]) > 1e-36f && fabsf(x[i]) < 1e-14f ? 0 : 2 * x[i];
}
