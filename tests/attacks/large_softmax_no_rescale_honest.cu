// task: ../../tasks/kernelbench/level1/023_softmax.task
// tries: honest: an online softmax that rescales its sum at every tile
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch softmax<<<B, 256>>>(x, y, D)
extern "C" __global__ void softmax(const float *x, float *y, int d) {
    __shared__ float part[8];
    const float *row = x + (int64_t)blockIdx.x * d;
    float m = -INFINITY, s = 0;
    for (int t = 0; t < d; t += 2048) {
        int end = t + 2048 < d ? t + 2048 : d;
        float top = -INFINITY;
        bool nan = false;
        for (int j = t + threadIdx.x; j < end; j += 256) {
            top = fmaxf(top, row[j]);
            nan |= row[j] != row[j];
        }
        for (int k = 16; k; k /= 2)
            top = fmaxf(top, __shfl_xor_sync(~0u, top, k));
        if (threadIdx.x % 32 == 0)
            part[threadIdx.x / 32] = top;
        nan = __syncthreads_or(nan);
        for (int k = 0; k < 8; k++)
            top = fmaxf(top, part[k]);
        __syncthreads();
        float now = nan || m != m ? NAN : fmaxf(m, top);
        s = m == now ? s : s * expf(m - now);
        m = now;
        float sum = 0;
        for (int j = t + threadIdx.x; j < end; j += 256)
            sum += expf(row[j] - m);
        for (int k = 16; k; k /= 2)
            sum += __shfl_xor_sync(~0u, sum, k);
        if (threadIdx.x % 32 == 0)
            part[threadIdx.x / 32] = sum;
        __syncthreads();
        for (int k = 0; k < 8; k++)
            s += part[k];
        __syncthreads();
    }
    for (int j = threadIdx.x; j < d; j += 256)
        y[(int64_t)blockIdx.x * d + j] = expf(row[j] - m) / s;
}
