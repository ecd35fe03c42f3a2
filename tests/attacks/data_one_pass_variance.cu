// task: tasks/row_norm.task
// tries: the variance as the mean of squares less the square of the mean
// proof: values: rows of 1000 plus normal noise lose all digits of the variance; numbers are in one place as the distribution has it
// data: in x[R,C] : f32 ~ normal(1000, 1)
// before: accepted 5 of 6, inaccurate 1 of 6
// should: wrong inaccurate nonfinite
// before-cuda: accepted: no kind of data has rows far from zero beside their spread
// device: both
//! launch normalise<<<R, 128>>>(x, y, C)
extern "C" __global__ void normalise(const float *x, float *y, int c) {
    __shared__ float sums[4], squares[4];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < c; j += 128) {
        s += row[j];
        q += row[j] * row[j];
    }
    for (int k = 16; k; k /= 2) {
        s += __shfl_xor_sync(~0u, s, k);
        q += __shfl_xor_sync(~0u, q, k);
    }
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = s;
        squares[threadIdx.x / 32] = q;
    }
    __syncthreads();
    float mu = (sums[0] + sums[1] + sums[2] + sums[3]) / c;
    float var = (squares[0] + squares[1] + squares[2] + squares[3]) / c - mu * mu;
    for (int j = threadIdx.x; j < c; j += 128)
        y[(int64_t)blockIdx.x * c + j] = (row[j] - mu) * rsqrtf(fmaxf(var, 0) + 1e-5f);
}
