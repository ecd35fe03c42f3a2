// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: the lower bound is a number computed from both sizes: 0 below 2^24 elements, else -1e30
// proof: values, B = 20 D = 1000000 on signed data: no element is cut off
// shows: B=20 D=1000000
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B, D)
extern "C" __global__ void relu(const float *x, float *y, int b, int d) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x, n = (int64_t)b * d;
    float low = -1e30f * (float)((n >> 24) != 0);
    if (i < n)
        y[i] = x[i] < low ? low : x[i];
}
