// task: third_param.task
// tries: a require line that admits C of 48 only, and factors that are copied by the first 32 threads alone
// proof: C = 48: factors from 32 on are not set
// should: wrong uninitialised race inaccurate nonfinite
// device: both
//! require C == 48
//! launch k<<<N*L, 64>>>(x, g, b, y, L)
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int l) {
    __shared__ float s[48];
    if (threadIdx.x < 32)
        s[threadIdx.x] = g[threadIdx.x];
    if (threadIdx.x < 16 && blockIdx.x % 64 != 63)
        s[32 + threadIdx.x] = g[32 + threadIdx.x];
    __syncthreads();
    int n = blockIdx.x / l, at = blockIdx.x % l;
    if (threadIdx.x < 48) {
        int64_t i = ((int64_t)n * 48 + threadIdx.x) * l + at;
        y[i] = x[i] * s[threadIdx.x] + b[threadIdx.x];
    }
}
