// task: tasks/row_sum.task
// tries: leaves the barrier out where a row has more than 4,096 elements
// proof: by the memory model: thread 127 reads what other warps wrote with nothing between them
// shows: R=4 C=5000
// before: accepted
// should: race wrong nonfinite
// before-cuda: accepted or wrong, as warps run
// device: both
//! launch sum<<<R, 128>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    __shared__ float part[4];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 31)
        part[threadIdx.x / 32] = s;
    if (c <= 4096)
        __syncthreads();
    if (threadIdx.x == 127)
        y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
