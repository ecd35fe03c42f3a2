// task: tasks/row_sum.task
// tries: honest: another order of the sum where a row begins with a negative number, with the barrier on both paths
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
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
    __syncthreads();
    if (threadIdx.x == 127)
        y[blockIdx.x] = row[0] < 0 ? (part[0] + part[1]) + (part[2] + part[3])
                                   : part[0] + part[1] + part[2] + part[3];
}
