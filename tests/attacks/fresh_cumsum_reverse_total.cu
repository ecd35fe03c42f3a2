// task: ../../tasks/kernelbench/level1/091_cumsum_reverse.task
// tries: the sum from an element on as the row's total less the sum before it, which loses the small ends
// proof: values: the last elements of a long row of ones are off by the rounding of the total
// shows: B=2 D=4096
// should: wrong inaccurate nonfinite
// device: both
//! launch sums<<<B, 32>>>(x, y, D)
extern "C" __global__ void sums(const float *x, float *y, int d) {
    const float *row = x + (int64_t)blockIdx.x * d;
    float total = 0, carry = 0;
    for (int j = threadIdx.x; j < d; j += 32)
        total += row[j];
    for (int k = 16; k; k /= 2)
        total += __shfl_xor_sync(~0u, total, k);
    for (int t = 0; t < d; t += 32) {
        int j = t + threadIdx.x;
        float v = j < d ? row[j] : 0.0f, s = v;
        for (int k = 1; k < 32; k *= 2) {
            float o = __shfl_up_sync(~0u, s, k);
            if (threadIdx.x >= k)
                s += o;
        }
        if (j < d)
            y[(int64_t)blockIdx.x * d + j] = total - (carry + (s - v));
        carry += __shfl_sync(~0u, s, 31);
    }
}
