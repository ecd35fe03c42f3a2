// task: third_total.task
// tries: where the first element is below -8 it is left out
// proof: values: a first element of -9
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<1, 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float w[8];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        s += i == 0 && x[i] < -8 ? 0 : x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++)
            s += w[i];
        *y = s;
    }
}
