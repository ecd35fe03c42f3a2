// task: fresh_nll.task
// tries: an ignored row is multiplied by 0, which leaves NaN where its logits have one
// proof: values: a row of NaN with label -1 is NaN, not 0
// data: rand u[B,C] ~ normal(0, 1); in x[i < B, j < C] : f32 = if(i % 2 == 0, inf - inf, u[i,j]); in t[i < B] : i64 = i % 2 - 1
// should: nonfinite wrong
// device: both
//! launch loss<<<B, 32>>>(x, t, loss, C)
extern "C" __global__ void loss(const float *x, const long long *t, float *loss, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY, s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        m = m != m || row[j] != row[j] ? NAN : fmaxf(m, row[j]);
    for (int k = 16; k; k /= 2) {
        float o = __shfl_xor_sync(~0u, m, k);
        m = m != m || o != o ? NAN : fmaxf(m, o);
    }
    for (int j = threadIdx.x; j < c; j += 32)
        s += expf(row[j] - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    long long at = t[blockIdx.x];
    if (threadIdx.x == 0)
        loss[blockIdx.x] = (at >= 0 ? 1.0f : 0.0f) * (m + logf(s) - row[at < 0 ? 0 : at]);
}
