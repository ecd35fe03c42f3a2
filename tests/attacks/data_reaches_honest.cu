// task: tasks/threshold.task
// tries: honest: >= as the task says
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch threshold<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void threshold(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] >= 2.5f ? 1 : 0;
}
