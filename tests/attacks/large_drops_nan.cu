// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: drops NaN where there are more than four million elements
// proof: values, B = 20 D = 1000000 on nonfinite data: NaN gives 0
// shows: B=20 D=1000000
// before: accepted
// should: nonfinite wrong
// known-sim: blocks of a shape too large to simulate meet no NaN; a GPU runs all of it
// before-cuda: nonfinite, at the task's own shape
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] = n > (4 << 20) ? fmaxf(x[i], 0.0f) : x[i] < 0.0f ? 0.0f : x[i];
}
