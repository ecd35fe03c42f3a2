// task: ../../tasks/smoke/softmax.task
// tries: the maximum is subtracted only where some element is above 80; on that way a barrier before shared memory is used again is missing
// proof: by the memory model: warps of a block write their sums over the maxima that others still read
// data: in x[R,C] : f32 ~ normal(0, 100)
// should: race wrong nonfinite inaccurate
// device: both
//! launch softmax<<<R, 256>>>(x, y, C)
extern "C" __global__ void softmax(const float *x, float *y, int c) {
    __shared__ float part[8];
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY, s = 0;
    bool nan = false, plain = true;
    for (int j = threadIdx.x; j < c; j += 256) {
        m = fmaxf(m, row[j]);
        nan |= row[j] != row[j];
        plain &= fabsf(row[j]) < 40;
    }
    nan = __syncthreads_or(nan);
    plain = __syncthreads_and(plain);
    if (plain) {
        m = 0;
    } else {
        for (int k = 16; k; k /= 2)
            m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
        if (threadIdx.x % 32 == 0)
            part[threadIdx.x / 32] = m;
        __syncthreads();
        for (int k = 0; k < 8; k++)
            m = fmaxf(m, part[k]);
    }
    m = nan ? NAN : m;
    for (int j = threadIdx.x; j < c; j += 256)
        s += expf(row[j] - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int k = 0; k < 8; k++)
        s += part[k];
    for (int j = threadIdx.x; j < c; j += 256)
        y[(int64_t)blockIdx.x * c + j] = expf(row[j] - m) / s;
}
