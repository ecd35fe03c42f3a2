// task: tasks/row_norm.task
// tries: one-pass variance about the row's first element, which may be far from all others
// proof: values: a row that begins with 10000 and goes on with normal numbers has a variance of few digits
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f32 = if(j == 0, 10000, u[i,j])
// before: wrong
// should: wrong inaccurate nonfinite
// before-cuda: accepted or inaccurate: a spike may lie at a row's beginning
// device: both
//! launch normalise<<<R, 128>>>(x, y, C)
extern "C" __global__ void normalise(const float *x, float *y, int c) {
    __shared__ float sums[4], squares[4];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0, q = 0, from = row[0];
    for (int j = threadIdx.x; j < c; j += 128) {
        s += row[j] - from;
        q += (row[j] - from) * (row[j] - from);
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
        y[(int64_t)blockIdx.x * c + j] = (row[j] - from - mu) * rsqrtf(fmaxf(var, 0) + 1e-5f);
}
