// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: one block of a large grid waits for ever
// proof: by the source: block 777 of B = 20 D = 1000000 does not end
// shows: B=20 D=1000000
// before: accepted
// should: no-progress timeout
// known-sim: the simulator gives up a block that takes long, which says nothing; a GPU has a watchdog
// before-cuda: timeout
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    while (gridDim.x > 20000 && blockIdx.x == 777 && *(volatile const float *)x != 1.2345e-6f)
        ;
}
