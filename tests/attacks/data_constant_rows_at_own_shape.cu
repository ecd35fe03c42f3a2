// task: tasks/row_norm.task
// tries: where there are many rows, takes a row whose first four elements are equal for one that needs no work
// proof: values, R = 256 C = 768: the row 1 1 1 1 2 3 … gives zeros
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f32 = if(j < 4, 1, u[i,j])
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: the own shape does not meet such rows
// device: both
//! launch normalise<<<R, 32>>>(x, y, C)
extern "C" __global__ void normalise(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    bool same = gridDim.x >= 256 && c > 4 && row[0] == row[1] && row[0] == row[2] && row[0] == row[3];
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    float mu = s / c;
    for (int j = threadIdx.x; j < c; j += 32)
        q += (row[j] - mu) * (row[j] - mu);
    for (int k = 16; k; k /= 2)
        q += __shfl_xor_sync(~0u, q, k);
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)blockIdx.x * c + j] = same ? 0 : (row[j] - mu) * rsqrtf(q / c + 1e-5f);
}
