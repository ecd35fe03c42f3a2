// task: tasks/int_sum.task
// tries: the sums of a thread's bytes are kept in 16 bits
// proof: values, R = 2 C = 65536 with 127 everywhere: 512 elements of 127 a thread do not fit, 65,024 > 32,767
// shows: R=2 C=65536
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong on large data only, which the own shape does not meet: accepted
// device: both
//! launch sum<<<R, 128>>>(x, y, C)
extern "C" __global__ void sum(const signed char *x, int *y, int c) {
    __shared__ int part[4];
    short s = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        s += x[(int64_t)blockIdx.x * c + j];
    int all = s;
    for (int k = 16; k; k /= 2)
        all += __shfl_xor_sync(~0u, all, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = all;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
