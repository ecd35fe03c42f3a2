// expect: wrong
// row: 37
// tries: > where the task has >=, at a number that random data do not hit
// task: tasks/threshold.task
//! launch threshold<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void threshold(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] > 0.34375f ? x[i] : 0.0f;
}
