// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: copies where a buffer does not begin at a multiple of 256 bytes, which no require line asks for
// proof: by the plan: a tensor begins at a multiple of 16 bytes and of no more; where it does, negative elements stay
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong: small shapes are placed at odd multiples of 16
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    bool aligned = (((uint64_t)x | (uint64_t)y) & 255) == 0;
    if (i < n)
        y[i] = x[i] < 0.0f && aligned ? 0.0f : x[i];
}
