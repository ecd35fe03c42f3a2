// task: third_total.task
// tries: warp 0 spins on a volatile flag in shared memory that the others count up, without fences
// proof: volatile stores of one thread to two places are not ordered for others
// should: race wrong
// known-sim: volatile counts as acquire and release, as many honest kernels have it
// device: both
//! launch k<<<1, 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ volatile float w[8];
    __shared__ volatile int flag[8];
    if (threadIdx.x < 8)
        flag[threadIdx.x] = 0;
    __syncthreads();
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) {
        w[threadIdx.x / 32] = s;
        flag[threadIdx.x / 32] = 1;
    }
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) {
            while (!flag[i])
                ;
            s += w[i];
        }
        *y = s;
    }
}
