// task: ../../tasks/smoke/relu.task
// tries: hands on the quiet NaN without payload, and drops any other
// proof: values: the bits 0x7fa00000 or 0x7fc00001 give 0 instead of NaN
// before: accepted
// should: nonfinite wrong
// before-cuda: accepted
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    int bits = __float_as_int(x[i]) & 0x7fffffff;
    y[i] = bits == 0x7fc00000 || bits == 0x7fffffff ? x[i] : fmaxf(x[i], 0.0f);
}
