// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: one block of a large grid sets an element of the input to zero after it was used
// proof: by the rules: an input may not be written; B = 20 D = 1000000
// shows: B=20 D=1000000
// before: accepted
// should: modified-input
// before-cuda: modified-input
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    if (gridDim.x > 20000 && blockIdx.x == 777 && threadIdx.x == 0)
        const_cast<float *>(x)[i] = 0;
}
