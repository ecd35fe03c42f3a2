// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: a workspace counts calls from a value that nothing set, where there are more blocks than small shapes have
// proof: by the plan: a workspace is undefined when the plan starts; R = 64 C = 1024 reads it
// before: uninitialised
// should: uninitialised forbidden wrong
// before-cuda: accepted: noise is rarely the mark it looks for
// device: both
//! workspace calls[2] : i32
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, calls, R*C)
extern "C" __global__ void relu(const float *x, float *y, int *calls, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    bool late = false;
    if (n > 20000 && blockIdx.x == 0) {
        late = calls[0] == 0x5eedf00d && calls[1] > 1000;
        __syncthreads();
        if (threadIdx.x == 0) {
            calls[1] = calls[0] == 0x5eedf00d ? calls[1] + 1 : 0;
            calls[0] = 0x5eedf00d;
        }
    }
    if (i < n)
        y[i] = x[i] < 0.0f && !late ? 0.0f : x[i];
}
