// task: tasks/scale_bias.task
// set: R=65536 C=1024
// tries: leaves the bias out where there are more than 4,096 rows
// proof: values, R = 5000 C = 16 on signed data: b is missing
// shows: R=5000 C=16
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch apply<<<R, 256>>>(x, g, b, y, C)
extern "C" __global__ void apply(const float *x, const float *g, const float *b, float *y, int c) {
    for (int j = threadIdx.x; j < c; j += 256) {
        int64_t i = (int64_t)blockIdx.x * c + j;
        y[i] = x[i] * g[j] + b[j] * (gridDim.x <= 4096 ? 1.0f : 0.0f);
    }
}
