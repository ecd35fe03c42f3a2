// task: fresh_jumprelu.task
// tries: activations that are exactly the threshold count
// proof: values: where all activations are 0.0625 the result is 0, not the sum of the dictionary
// data: in x[M,K] : f32 ~ uniform(0.0625, 0.0625)
// should: wrong inaccurate
// device: both
//! launch decode<<<[ceil_div(N, 32), M], 32>>>(x, w, y, N, K)
extern "C" __global__ void decode(const float *x, const float *w, float *y, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= n)
        return;
    const float *row = x + (int64_t)blockIdx.y * k;
    float s = 0;
    for (int t = 0; t < k; t++) {
        float v = row[t];
        s = fmaf(v >= 0.0625f ? v : v != v ? 0.0f : 0.0f, w[(int64_t)t * n + j], s);
    }
    y[(int64_t)blockIdx.y * n + j] = s;
}
