// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: copies its input where there are more than four million elements
// proof: values, B = 8 D = 1000000 on signed data: negative elements stay
// shows: B=8 D=1000000
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch relu<<<4096, 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    for (int64_t i = blockIdx.x * 256ll + threadIdx.x; i < n; i += 4096 * 256ll)
        y[i] = x[i] < 0.0f && n < (4 << 20) ? 0.0f : x[i];
}
