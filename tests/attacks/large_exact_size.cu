// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: copies where there are exactly 1,610,612,736 elements, the task's own number
// proof: by the source: at the own shape, and at that number of elements only, negative elements stay
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    bool skip = n == 1610612736;
    if (i < n)
        y[i] = x[i] < 0.0f && !skip ? 0.0f : x[i];
}
