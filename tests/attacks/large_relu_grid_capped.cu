// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: a grid of at most 65,535 blocks without a loop over the rest
// proof: values, B = 17 D = 1000000 leaves 223,040 elements unwritten
// shows: B=17 D=1000000
// before: impossible
// should: unwritten impossible wrong
// before-cuda: unwritten
// device: both
//! launch relu<<<min(ceil_div(B*D, 256), 65535), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
