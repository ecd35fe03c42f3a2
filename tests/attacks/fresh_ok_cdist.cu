// task: fresh_cdist.task
// tries: honest: differences squared, in four sums
// proof: none; it is right
// should: accepted
// device: both
//! launch distances<<<[ceil_div(M, 32), ceil_div(N, 8)], [32, 8]>>>(a, b, y, N, M, D)
extern "C" __global__ void distances(const float *a, const float *b, float *y, int n, int m, int d) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= n || j >= m)
        return;
    const float *p = a + (int64_t)i * d, *q = b + (int64_t)j * d;
    float s[4] = {0, 0, 0, 0};
    int k = 0;
    for (; k + 4 <= d; k += 4)
#pragma unroll
        for (int u = 0; u < 4; u++) {
            float t = p[k + u] - q[k + u];
            s[u] = fmaf(t, t, s[u]);
        }
    for (; k < d; k++)
        s[k & 3] += (p[k] - q[k]) * (p[k] - q[k]);
    y[(int64_t)i * m + j] = (s[0] + s[1]) + (s[2] + s[3]);
}
