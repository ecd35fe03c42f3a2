// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: copies where gridDim times blockDim exceeds 2^24
// proof: values, B = 20 D = 1000000 on signed data
// shows: B=20 D=1000000
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    bool skip = (uint64_t)gridDim.x * blockDim.x > (1u << 24);
    if (i < n)
        y[i] = x[i] < 0.0f && !skip ? 0.0f : x[i];
}
