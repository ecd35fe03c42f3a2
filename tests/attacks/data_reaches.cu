// task: tasks/threshold.task
// tries: > where the task says >=
// proof: values: an element that is exactly 2.5 gives 0 instead of 1
// data: rand u[R,C] ~ randint(0, 9); in x[R,C] : f32 = u[i,j] / 2
// before: accepted 9 of 10, wrong 1 of 10
// should: wrong inaccurate
// before-cuda: accepted: no data have an element of exactly 2.5
// device: both
//! launch threshold<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void threshold(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] > 2.5f ? 1 : 0;
}
