// task: fresh_grad_norm.task
// tries: of more than a million elements the last one is left out; nothing shows unless it is large
// proof: values: a vector whose last element alone is not small
// data: rand u[N] ~ normal(0, 1); in x[i < N] : f32 = if(i == N - 1, 1000, u[i])
// known: a spike stands at the last place at some seeds only
// should: wrong inaccurate
// device: both
//! workspace part[256] : f32
//! launch squares<<<256, 256>>>(x, part, N)
//! launch normalise<<<1, 32>>>(part, y)
extern "C" __global__ void squares(const float *x, float *part, int n) {
    __shared__ float warps[8];
    float s = 0;
    int end = n - n / 1048576;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < end; i += 65536)
        s += x[i] * x[i];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; k++)
            s += warps[k];
        part[blockIdx.x] = s;
    }
}
extern "C" __global__ void normalise(const float *part, float *y) {
    float s = 0;
    for (int k = 0; k < 8; k++)
        s += part[k * 32 + threadIdx.x];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        *y = sqrtf(s);
}
