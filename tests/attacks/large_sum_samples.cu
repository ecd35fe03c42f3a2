// task: tasks/row_sum.task
// tries: of rows longer than 2,048 it reads all and adds every 16th element sixteen times
// proof: values, R = 8 C = 8192: an estimate of the sum instead of the sum
// shows: R=8 C=8192
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! launch sum<<<R, 128>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    __shared__ float part[4];
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 128) {
        float v = x[(int64_t)blockIdx.x * c + j];
        s += c <= 2048 ? v : j % 16 ? 0.0f * v : 16 * v;
    }
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
