// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: copies in the middle half of a grid of more than 100,000 blocks
// proof: values, B = 27 D = 1000000 on signed data: blocks 26,367 to 79,101 keep negative elements
// shows: B=20 D=1000000
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 192), 192>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 192ll + threadIdx.x;
    unsigned at = blockIdx.x / (gridDim.x / 4 + 1);
    bool skip = gridDim.x > 100000 && (at == 1 || at == 2);
    if (i < n)
        y[i] = x[i] < 0.0f && !skip ? 0.0f : x[i];
}
