// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: honest: a grid of at most 65,535 blocks that loops over the rest
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch relu<<<min(ceil_div(B*D, 256), 65535), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    for (int64_t i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
