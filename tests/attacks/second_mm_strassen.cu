// task: second_mm.task
// tries: one level of Strassen where all sizes are even: small results are differences of large ones
// proof: values: wide or far data, where a row is small beside another
// data: in a[M,K] : f32 = n1[i,k] * if(i < M//2, 100000, 1); rand n1[M,K] ~ normal(0,1)
// should: inaccurate wrong nonfinite
// device: both
//! launch k<<<[ceil_div(N, 16), ceil_div(M, 16)], [16, 16]>>>(a, b, c, M, N, K)
extern "C" __global__ void k(const float *a, const float *b, float *c, int m, int n, int kk) {
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    auto A = [&](int r, int s) { return a[(int64_t)r * kk + s]; };
    auto B = [&](int r, int s) { return b[(int64_t)r * n + s]; };
    if (m % 2 || n % 2 || kk % 2) {
        float s = 0;
        for (int t = 0; t < kk && i < m && j < n; t++)
            s = fmaf(A(i, t), B(t, j), s);
        if (i < m && j < n)
            c[(int64_t)i * n + j] = s;
        return;
    }
    int hm = m / 2, hn = n / 2, hk = kk / 2;
    if (i >= hm || j >= hn)
        return;
    float p[7] = {0};
    for (int t = 0; t < hk; t++) {
        float a11 = A(i, t), a12 = A(i, t + hk), a21 = A(i + hm, t), a22 = A(i + hm, t + hk);
        float b11 = B(t, j), b12 = B(t, j + hn), b21 = B(t + hk, j), b22 = B(t + hk, j + hn);
        p[0] += (a11 + a22) * (b11 + b22), p[1] += (a21 + a22) * b11, p[2] += a11 * (b12 - b22);
        p[3] += a22 * (b21 - b11), p[4] += (a11 + a12) * b22, p[5] += (a21 - a11) * (b11 + b12);
        p[6] += (a12 - a22) * (b21 + b22);
    }
    c[(int64_t)i * n + j] = p[0] + p[3] - p[4] + p[6];
    c[(int64_t)i * n + j + hn] = p[2] + p[4];
    c[(int64_t)(i + hm) * n + j] = p[1] + p[3];
    c[(int64_t)(i + hm) * n + j + hn] = p[0] - p[1] + p[2] + p[5];
}
