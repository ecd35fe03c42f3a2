// task: tasks/row_max.task
// tries: from the 1,025th element of a row on, what is above the largest number counts as the largest number
// proof: values: a row whose 1,100th element is inf
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f32 = if(j == 1100 && i % 2 == 0, inf, u[i,j])
// should: nonfinite wrong
// device: both
//! launch largest<<<R, 256>>>(x, y, C)
extern "C" __global__ void largest(const float *x, float *y, int c) {
    __shared__ float part[8];
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY;
    for (int j = threadIdx.x; j < c; j += 256) {
        float v = row[j];
        if (j >= 1024 && v > FLT_MAX)
            v = FLT_MAX;
        m = v > m || v != v ? v : m;
    }
    for (int k = 16; k; k /= 2) {
        float o = __shfl_xor_sync(~0u, m, k);
        m = o > m || o != o ? o : m;
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; k++)
            m = part[k] > m || part[k] != part[k] ? part[k] : m;
        y[blockIdx.x] = m;
    }
}
