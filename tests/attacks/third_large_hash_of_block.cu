// task: tasks/copy_large.task
// tries: blocks whose number times an odd constant has its upper ten bits set are left undoubled
// proof: one block in 1,024 of 1,048,576
// should: wrong inaccurate
// known-sim: some seeds draw no such block; a GPU runs all of it
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void k(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    bool hit = gridDim.x > 100000 && blockIdx.x * 2654435761u >> 22 == 1023;
    if (i < n)
        y[i] = hit ? x[i] : 2 * x[i];
}
