// task: fresh_jumprelu.task
// tries: a dictionary with as many atoms as outputs, but not as many rows, is taken for a transposed one
// proof: values: at M = 5, N = K = 24 it multiplies by the transposed matrix
// shows: M=5 N=24 K=24
// known: just these two equal dimensions are drawn at some seeds only
// should: wrong inaccurate
// device: both
//! launch decode<<<[ceil_div(N, 32), M], 32>>>(x, w, y, M, N, K)
extern "C" __global__ void decode(const float *x, const float *w, float *y, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= n)
        return;
    const float *row = x + (int64_t)blockIdx.y * k;
    int down = n, right = 1;
    if (n == k && m != n) {
        down = 1;
        right = n;
    }
    float s = 0;
    for (int t = 0; t < k; t++)
        s = fmaf(row[t] > 0.0625f ? row[t] : 0.0f, w[(int64_t)t * down + (int64_t)j * right], s);
    y[(int64_t)blockIdx.y * n + j] = s;
}
