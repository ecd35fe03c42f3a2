// task: ../../tasks/smoke/relu.task
// tries: hands on the NaN that the data have, and takes one with its sign set for a negative number
// proof: values: the bits 0xffc00000 give 0 instead of NaN
// before: accepted
// should: nonfinite wrong
// before-cuda: accepted: data have one NaN, 0x7fc00000 or 0x7fffffff
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = __float_as_int(x[i]) < 0 ? 0.0f : x[i];
}
