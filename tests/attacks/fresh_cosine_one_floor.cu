// task: ../../tasks/layers/cosine_similarity.task
// tries: the product of the norms has a floor of 1e-16, not each norm one of 1e-8
// proof: values: norms of 1e-12 and 1e3 give 1e-9 in place of 1e-4 of the cosine
// data: in a[B,D] : f32 ~ normal(0, 1e-14); in b[B,D] : f32 ~ normal(0, 1000)
// should: wrong inaccurate
// device: both
//! launch cosine<<<B, 64>>>(a, b, y, D)
extern "C" __global__ void cosine(const float *a, const float *b, float *y, int d) {
    __shared__ float part[3];
    int64_t row = (int64_t)blockIdx.x * d;
    float p = 0, q = 0, s = 0;
    for (int j = threadIdx.x; j < d; j += 64) {
        float u = a[row + j], v = b[row + j];
        p = fmaf(u, u, p);
        q = fmaf(v, v, q);
        s = fmaf(u, v, s);
    }
    for (int k = 16; k; k /= 2) {
        p += __shfl_xor_sync(~0u, p, k);
        q += __shfl_xor_sync(~0u, q, k);
        s += __shfl_xor_sync(~0u, s, k);
    }
    if (threadIdx.x == 32) {
        part[0] = p;
        part[1] = q;
        part[2] = s;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float norm = sqrtf(p + part[0]) * sqrtf(q + part[1]);
        y[blockIdx.x] = (s + part[2]) / (norm < 1e-16f ? 1e-16f : norm);
    }
}
