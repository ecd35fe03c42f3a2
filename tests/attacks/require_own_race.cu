// task: tasks/copy.task
// tries: a row turned round in shared memory and back, without a barrier; the require line admits large shapes only, which are not checked
// proof: by the memory model: shared memory is written by one warp and read by another with nothing between them
// shows: R=200 C=1024
// before: accepted
// should: race wrong nonfinite
// before-cuda: accepted or wrong, as warps run
// device: both
//! require R*C >= 200000
//! require C <= 1024
//! launch twice<<<R, C>>>(x, y, C)
extern "C" __global__ void twice(const float *x, float *y, int c) {
    __shared__ float row[1024];
    int from = c - 32 - threadIdx.x / 32 * 32 + threadIdx.x % 32; // the last warp's first
    row[threadIdx.x] = 2 * x[blockIdx.x * c + threadIdx.x];
    if (threadIdx.x >= c / 2)
        y[blockIdx.x * c + from] = row[from];
    if (threadIdx.x >= c / 2)
        y[blockIdx.x * c + threadIdx.x] = row[threadIdx.x];
}
