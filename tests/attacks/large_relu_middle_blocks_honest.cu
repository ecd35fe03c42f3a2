// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: honest: another instruction in the middle half of a large grid, with the same result
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch relu<<<ceil_div(B*D, 192), 192>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 192ll + threadIdx.x;
    unsigned at = blockIdx.x / (gridDim.x / 4 + 1);
    bool middle = gridDim.x > 100000 && (at == 1 || at == 2);
    if (i >= n)
        return;
    float v = x[i];
    y[i] = middle ? (v != v ? v : fmaxf(v, 0.0f)) : v < 0.0f ? 0.0f : v;
}
