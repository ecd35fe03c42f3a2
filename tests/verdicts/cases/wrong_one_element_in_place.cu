// expect: wrong
// row: 34
// tries: one element of a large tensor that is written in place, known by its number, stays as it was
// task: tasks/halved.task
// set: R=65536 C=4096
// shape-sim: R=65536 C=4096
//! launch halve<<<ceil_div(R*C, 256), 256>>>(x, R*C)
extern "C" __global__ void halve(float *x, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = i == 200000007 ? x[i] : 0.5f * x[i];
}
