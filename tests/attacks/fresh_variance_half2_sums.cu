// task: fresh_variance.task
// tries: the mean of a column is summed in f16 pairs, 32 rows at a time, and only then in fp32
// proof: values: f16 keeps eleven bits: of a column near 100, sums of 32 are off by 1
// data: in x[R,C] : f16 ~ normal(100, 0.5)
// should: wrong inaccurate nonfinite
// device: both
//! launch variance<<<ceil_div(C, 32), 32>>>(x, y, R, C)
#include <cuda_fp16.h>
extern "C" __global__ void variance(const __half *x, float *y, int r, int c) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= c)
        return;
    float sum = 0, q = 0;
    for (int i = 0; i < r; i += 32) {
        __half s = __float2half(0.0f);
        for (int k = i; k < min(i + 32, r); k++)
            s = __hadd(s, x[(int64_t)k * c + j]);
        sum += __half2float(s);
    }
    float mu = sum / r;
    for (int i = 0; i < r; i++) {
        float d = __half2float(x[(int64_t)i * c + j]) - mu;
        q = fmaf(d, d, q);
    }
    y[j] = q / r;
}
