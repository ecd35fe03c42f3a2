// task: tasks/row_norm.task
// tries: honest: the variance from the differences to the mean
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch normalise<<<R, 128>>>(x, y, C)
static __device__ float total(float v, float *part) {
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void normalise(const float *x, float *y, int c) {
    __shared__ float sums[4], squares[4];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        s += row[j];
    float mu = total(s, sums) / c;
    for (int j = threadIdx.x; j < c; j += 128)
        q += (row[j] - mu) * (row[j] - mu);
    float var = total(q, squares) / c;
    for (int j = threadIdx.x; j < c; j += 128)
        y[(int64_t)blockIdx.x * c + j] = (row[j] - mu) * rsqrtf(var + 1e-5f);
}
