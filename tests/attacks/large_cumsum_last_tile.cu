// task: ../../tasks/kernelbench/level1/089_cumsum.task
// tries: leaves the carry out in the last tile where there are more than 64 tiles
// proof: values, B = 4 D = 4096: the last 32 columns hold sums of their own tile
// shows: B=4 D=4096
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! launch scan<<<B, 32>>>(x, y, D)
extern "C" __global__ void scan(const float *x, float *y, int d) {
    int64_t row = (int64_t)blockIdx.x * d;
    float carry = 0;
    for (int t = 0; t < d; t += 32) {
        int j = t + threadIdx.x;
        float v = j < d ? x[row + j] : 0;
        for (int k = 1; k < 32; k *= 2) {
            float w = __shfl_up_sync(~0u, v, k);
            v += threadIdx.x >= k ? w : 0;
        }
        v += d > 2048 && t + 32 >= d ? 0 : carry;
        if (j < d)
            y[row + j] = v;
        carry = __shfl_sync(~0u, v, 31);
    }
}
