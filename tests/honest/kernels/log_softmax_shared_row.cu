// task: tasks/kernelbench/level1/024_log_softmax.task
// set: B=256 D=4096
// what: the row read once and kept in shared memory
//! require D <= 8192
//! launch log_softmax<<<B, 256, 4*D>>>(x, y, D)
static __device__ float reduced(float v, bool largest, float *warps) {
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, step);
        v = largest ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = warps[0];
    for (int w = 1; w < 8; w++)
        v = largest ? fmaxf(v, warps[w]) : v + warps[w];
    return v;
}

extern "C" __global__ void log_softmax(const float *x, float *y, int d) {
    extern __shared__ float row[];
    __shared__ float warps[8];
    long long base = (long long)blockIdx.x * d;
    float top = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256) {
        row[j] = x[base + j];
        top = fmaxf(top, row[j]);
    }
    top = reduced(top, true, warps);
    for (int j = threadIdx.x; j < d; j += 256)
        sum += expf(row[j] - top);
    float shift = logf(reduced(sum, false, warps));
    for (int j = threadIdx.x; j < d; j += 256)
        y[base + j] = row[j] - top - shift;
}
