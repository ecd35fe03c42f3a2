// task: tasks/kernelbench/level1/022_tanh_activation.task
// set: B=64 D=16384
// what: a grid of rows and columns
//! require B <= 65535
//! launch tanh_rows<<<[ceil_div(D, 128), B], 128>>>(x, y, D)
extern "C" __global__ void tanh_rows(const float *x, float *y, int cols) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    long long i = (long long)blockIdx.y * cols + j;
    if (j < cols)
        y[i] = tanhf(x[i]);
}
