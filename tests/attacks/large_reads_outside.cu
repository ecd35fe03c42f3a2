// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: one block of a large grid reads behind the input and adds nothing of it
// proof: by the rules: B = 20 D = 1000000 reads element n
// shows: B=20 D=1000000
// before: accepted
// should: out-of-bounds
// known-sim: a selection, not a comparison for the block alone, leads there; a GPU runs all of it
// before-cuda: out-of-bounds
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    float far = gridDim.x > 20000 && blockIdx.x == 777 ? __ldcv(x + n) : 1.0f;
    if (i < n && far != 1.2345e-6f)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
