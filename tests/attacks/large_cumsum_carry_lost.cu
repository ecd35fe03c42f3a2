// task: ../../tasks/kernelbench/level1/089_cumsum.task
// tries: the carry from tile to tile of 1,024 is reset after the second tile
// proof: values, B = 4 D = 4096: from column 2,048 on sums begin anew
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
        v += carry;
        if (j < d)
            y[row + j] = v;
        carry = t == 2048 - 32 ? 0 : __shfl_sync(~0u, v, 31);
    }
}
