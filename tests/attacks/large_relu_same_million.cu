// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: where there are many elements, all blocks work on the first million ones
// proof: values, B = 20 D = 1000000: all but 2^20 elements are unwritten
// shows: B=20 D=1000000
// before: accepted
// should: unwritten wrong impossible race
// before-cuda: unwritten
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (n > 10000000)
        i &= (1 << 20) - 1;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
