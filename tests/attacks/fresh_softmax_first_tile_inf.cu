// task: ../../tasks/smoke/softmax.task
// tries: online softmax by tiles of 64; a row that begins with a whole tile of -inf, as an additive mask makes it, is NaN
// proof: values: exp(-inf - -inf) of the first tile is NaN and stays
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f32 = if(j < 64 && j < C - 1, 0 - inf, u[i,j])
// known: a stretch of infinities that fills the first tile is drawn at some seeds only
// should: nonfinite wrong
// device: both
//! launch softmax<<<R, 32>>>(x, y, C)
extern "C" __global__ void softmax(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY, s = 0;
    for (int t = 0; t < c; t += 64) {
        float a = t + threadIdx.x < c ? row[t + threadIdx.x] : -INFINITY;
        float b = t + 32 + threadIdx.x < c ? row[t + 32 + threadIdx.x] : -INFINITY;
        float top = a != a || b != b ? NAN : fmaxf(a, b);
        for (int k = 16; k; k /= 2) {
            float o = __shfl_xor_sync(~0u, top, k);
            top = top != top || o != o ? NAN : fmaxf(top, o);
        }
        float now = m != m || top != top ? NAN : fmaxf(m, top);
        float p = expf(a - now) + expf(b - now);
        for (int k = 16; k; k /= 2)
            p += __shfl_xor_sync(~0u, p, k);
        s = (t ? s * expf(m - now) : 0.0f) + p;
        m = now;
    }
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)blockIdx.x * c + j] = expf(row[j] - m) / s;
}
