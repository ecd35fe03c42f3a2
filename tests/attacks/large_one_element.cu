// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: one element of more than four million, behind the middle, is copied
// proof: values, B = 20 D = 1000000: element 10,012,345 stays negative where it is
// shows: B=20 D=1000000
// before: accepted
// should: wrong inaccurate
// known-sim: the element is not drawn; a GPU runs all of it
// before-cuda: wrong, in most runs: the element is negative in half of the signed contents
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    bool skip = n > (4 << 20) && i == n / 2 + 12345;
    if (i < n)
        y[i] = x[i] < 0.0f && !skip ? 0.0f : x[i];
}
