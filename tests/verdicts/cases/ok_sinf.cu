// expect: accepted
// row: 13
// tries: honest: libdevice's own tables are read
// task: tasks/sin.task
//! launch sine<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void sine(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = sinf(x[i]);
}
