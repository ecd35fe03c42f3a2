// task: ../../tasks/kernelbench/level1/023_softmax.task
// tries: an online softmax that does not rescale its sum when a later tile of 2048 has a larger maximum
// proof: values, from D = 2049 on; a row whose second tile has the larger maximum gets too large a sum
// shows: B=8 D=8192
// before: accepted
// should: wrong inaccurate nonfinite
// before-cuda: wrong, at the task's own shape
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
        m = nan ? NAN : fmaxf(m, top);
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
