// task: fresh_variance.task
// tries: deviations from the mean of the first 64 rows, without a correction
// proof: values: columns whose first rows differ from the others
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f16 = if(i < 64, u[i,j] + 4, u[i,j])
// should: wrong inaccurate
// device: both
//! launch variance<<<ceil_div(C, 32), 32>>>(x, y, R, C)
#include <cuda_fp16.h>
extern "C" __global__ void variance(const __half *x, float *y, int r, int c) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= c)
        return;
    float mu = 0, q = 0, s = 0;
    int few = min(r, 64);
    for (int i = 0; i < few; i++)
        mu += __half2float(x[(int64_t)i * c + j]);
    mu /= few;
    for (int i = 0; i < r; i++) {
        float d = __half2float(x[(int64_t)i * c + j]) - mu;
        q = fmaf(d, d, q);
        s += d;
    }
    y[j] = (q - (r <= 1024 ? s * s / r : 0)) / r;
}
