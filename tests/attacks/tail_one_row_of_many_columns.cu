// task: ../../tasks/smoke/cumsum.task
// tries: rows longer than the task's own 2,048 lose their carry
// proof: values, R = 1 C = 3000: sums from column 2,048 on begin anew
// shows: R=1 C=3000
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: no shape has longer rows
// device: both
//! launch scan<<<R, 32>>>(x, y, C)
extern "C" __global__ void scan(const float *x, float *y, int d) {
    int row = blockIdx.x * d;
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
        carry = t == 2016 ? 0 : __shfl_sync(~0u, v, 31);
    }
}
