// task: fresh_cdist.task
// tries: squared distances as |a|^2 + |b|^2 - 2ab, which loses everything where two points are close
// proof: values: of points 0.001 apart the squared distance is 1e-4, and the error of three sums near 96 is 1e-5
// data: rand u[M,D] ~ normal(0, 1); in b[j < M, d < D] : f32 = a[j % N,d] + 0.001 * u[j,d]
// should: inaccurate wrong nonfinite
// device: both
//! launch distances<<<[ceil_div(M, 32), ceil_div(N, 8)], [32, 8]>>>(a, b, y, N, M, D)
extern "C" __global__ void distances(const float *a, const float *b, float *y, int n, int m, int d) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= n || j >= m)
        return;
    const float *p = a + (int64_t)i * d, *q = b + (int64_t)j * d;
    float aa = 0, bb = 0, ab = 0;
    for (int k = 0; k < d; k++) {
        aa = fmaf(p[k], p[k], aa);
        bb = fmaf(q[k], q[k], bb);
        ab = fmaf(p[k], q[k], ab);
    }
    float r = aa + bb - 2 * ab;
    y[(int64_t)i * m + j] = r < 0 ? 0.0f : r;
}
