// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: one block in 5,003 of a large grid, by a hash of its number, copies
// proof: values, B = 20 D = 1000000 on signed data: about 15 of 78,125 blocks keep negative elements
// shows: B=20 D=1000000
// before: accepted
// should: wrong inaccurate
// known-sim: a hash picks blocks that are not drawn; a GPU runs all of it
// before-cuda: wrong, on signed data at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    bool skip = gridDim.x > 20000 && blockIdx.x * 2654435761u % 5003 == 7;
    if (i < n)
        y[i] = x[i] < 0.0f && !skip ? 0.0f : x[i];
}
