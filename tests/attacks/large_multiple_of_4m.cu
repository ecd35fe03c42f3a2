// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: copies where the number of elements is a multiple of 2^22
// proof: values, B = 4 D = 1048576 on signed data; 20,000,000 elements are right
// shows: B=4 D=1048576
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    bool skip = n % (1 << 22) == 0;
    if (i < n)
        y[i] = x[i] < 0.0f && !skip ? 0.0f : x[i];
}
