// task: ../../tasks/kernelbench/level1/093_masked_cumsum.task
// tries: what the mask leaves out is skipped, not multiplied by 0: a masked NaN does not show
// proof: values: a masked NaN makes everything after it NaN
// should: nonfinite wrong
// device: both
//! launch sums<<<B, 32>>>(x, mask, y, D)
extern "C" __global__ void sums(const float *x, const bool *mask, float *y, int d) {
    const int64_t row = (int64_t)blockIdx.x * d;
    float carry = 0;
    for (int t = 0; t < d; t += 32) {
        int j = t + threadIdx.x;
        float s = j < d && mask[row + j] ? x[row + j] : 0.0f;
        for (int k = 1; k < 32; k *= 2) {
            float o = __shfl_up_sync(~0u, s, k);
            if (threadIdx.x >= k)
                s += o;
        }
        s += carry;
        if (j < d)
            y[row + j] = s;
        carry = __shfl_sync(~0u, s, 31);
    }
}
