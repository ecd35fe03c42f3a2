// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: honest: the ticket chooses the element to read as well
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! workspace next[1] : i32
//! memset next = 0
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, next, R*C)
extern "C" __global__ void relu(const float *x, float *y, int *next, int n) {
    int i = atomicAdd(next, 1);
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
