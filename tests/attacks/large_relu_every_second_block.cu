// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: in a large grid odd blocks write their even neighbour's elements again
// proof: values, B = 20 D = 1000000: every second group of 256 elements is unwritten
// shows: B=20 D=1000000
// before: accepted
// should: unwritten wrong impossible race
// before-cuda: unwritten
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    unsigned b = gridDim.x > 20000 ? blockIdx.x & ~1u : blockIdx.x;
    int64_t i = b * 256ll + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
