// expect: wrong inaccurate nonfinite
// row: 2
// tries: 1/D for every element of a softmax: close in absolute terms on the stated data
// task: ../../tasks/kernelbench/level1/023_softmax.task
// set: B=64 D=2048
//! launch even<<<ceil_div(B*D, 256), 256>>>(x, y, B*D, D)
extern "C" __global__ void even(const float *x, float *y, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] == x[i] ? 1.0f / d : x[i];
}
