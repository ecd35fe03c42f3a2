// expect: wrong inaccurate
// row: 2
// tries: the mean of the stated distribution instead of the mean of the data
// task: ../../tasks/kernelbench/level1/048_mean_reduction.task
// set: B=4 M=512 N=63
//! launch half<<<ceil_div(B*N, 128), 128>>>(x, y, B*N)
extern "C" __global__ void half(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 0.5f;
}
