// task: third_total.task
// tries: honest: a lock that is taken with an acquiring and released with a releasing exchange
// should: accepted
// device: both
//! workspace lock[1] : i32
//! memset lock = 0
//! memset y = 0
//! launch k<<<32, 256>>>(x, y, lock, N)
extern "C" __global__ void k(const float *x, float *y, int *lock, int n) {
    __shared__ float w[8];
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 32 * 256)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < 8; i++)
        s += w[i];
    while (atomicExch(lock, 1))
        ;
    __threadfence();
    *(volatile float *)y = *(volatile float *)y + s;
    __threadfence();
    atomicExch(lock, 0);
}
