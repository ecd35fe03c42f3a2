// task: second_lnlong.task
// tries: rows that do not fit shared memory, of 6,144 elements and more, have their variance as the mean of squares less the square of the mean
// proof: values: a row with a mean of 64 and a spread of 1
// data: in x[R,C] : f32 ~ normal(4000, 1)
// known: on mixed data blocks of a large shape are forgiven inaccuracy; a GPU runs all of it
// should: inaccurate wrong nonfinite
// device: both
//! launch k<<<R, 256>>>(x, g, y, C)
__device__ float total(float s) {
    __shared__ float w[8];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < 8; i++)
        s += w[i];
    return s;
}
extern "C" __global__ void k(const float *x, const float *g, float *y, int c) {
    x += (int64_t)blockIdx.x * c, y += (int64_t)blockIdx.x * c;
    float s = 0, q = 0;
    if (c >= 6144) {
        for (int j = threadIdx.x; j < c; j += 256)
            s += x[j], q += x[j] * x[j];
        s = total(s) / c, q = fmaxf(total(q) / c - s * s, 0);
    } else {
        for (int j = threadIdx.x; j < c; j += 256)
            s += x[j];
        s = total(s) / c;
        for (int j = threadIdx.x; j < c; j += 256)
            q += (x[j] - s) * (x[j] - s);
        q = total(q) / c;
    }
    float r = rsqrtf(q + 1e-5f);
    for (int j = threadIdx.x; j < c; j += 256)
        y[j] = (x[j] - s) * r * g[j];
}
