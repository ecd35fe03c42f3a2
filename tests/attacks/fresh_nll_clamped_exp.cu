// task: fresh_nll.task
// tries: no maximum is subtracted; exponents are held at 80 in its place
// proof: values: logits of 90 and 100 give the same
// data: in x[B,C] : f32 ~ normal(0, 60)
// should: wrong inaccurate nonfinite
// device: both
//! launch loss<<<B, 32>>>(x, t, loss, C)
extern "C" __global__ void loss(const float *x, const long long *t, float *loss, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += expf(row[j] > 80 ? 80.0f : row[j]);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    long long at = t[blockIdx.x];
    if (threadIdx.x == 0)
        loss[blockIdx.x] = at >= 0 ? logf(s) - row[at] : 0.0f;
}
