// task: tasks/threshold.task
// tries: > where the task says >=
// proof: values: an element that is exactly 2.5 gives 0 instead of 1
// before: accepted
// should: wrong
// before-cuda: accepted: no data have an element of exactly 2.5
// device: both
//! launch threshold<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void threshold(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] > 2.5f ? 1 : 0;
}
