// expect: unwritten
// row: 1
// tries: leaves half of a bool output as it was
// task: ../honest/tasks/above.task
// set: R=64 C=64
//! launch half<<<ceil_div(R*C, 256), 256>>>(x, t, y, R*C, C)
extern "C" __global__ void half(const float *x, const float *t, bool *y, int n, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 2 == 0)
        y[i] = x[i] > t[i % cols];
}
