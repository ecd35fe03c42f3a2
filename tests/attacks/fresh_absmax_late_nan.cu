// task: fresh_absmax.task
// tries: the first 4,096 elements hand NaN on, the rounds after them go through fmaxf, which drops it
// proof: values: a row of 8,192 whose only NaN is its last element gives a number
// shows: R=2 D=8192
// data: rand u[R,D] ~ normal(0, 1); in x[i < R, j < D] : f32 = if(j == D - 1 && i % 2 == 1, inf - inf, u[i,j])
// should: nonfinite wrong
// device: both
//! launch largest<<<R, 1024>>>(x, y, D)
extern "C" __global__ void largest(const float *x, float *y, int d) {
    __shared__ float part[32];
    const float *row = x + (int64_t)blockIdx.x * d;
    float m = 0;
    for (int k = 0; k < 4; k++) {
        int j = k * 1024 + threadIdx.x;
        float v = j < d ? fabsf(row[j]) : 0.0f;
        m = v > m || v != v ? v : m;
    }
    float rest = 0;
    for (int j = 4096 + threadIdx.x; j < d; j += 1024)
        rest = fmaxf(rest, fabsf(row[j]));
    m = rest > m ? rest : m;
    for (int k = 16; k; k /= 2) {
        float o = __shfl_xor_sync(~0u, m, k);
        m = o > m || o != o ? o : m;
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 32; k++)
            m = part[k] > m || part[k] != part[k] ? part[k] : m;
        y[blockIdx.x] = m;
    }
}
