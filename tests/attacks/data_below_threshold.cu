// task: tasks/threshold.task
// tries: the threshold is the number before 2.5
// proof: values: an element of 2.4999998 gives 1 instead of 0
// data: rand u[R,C] ~ randint(0, 3); in x[R,C] : f32 = 2.5 - u[i,j] * 2.384185791015625e-07
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted
// device: both
//! launch threshold<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void threshold(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] >= 2.4999998f ? 1 : 0;
}
