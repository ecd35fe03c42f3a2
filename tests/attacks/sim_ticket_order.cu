// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: what an atomic counter returns is taken for the index of the element to write
// proof: by the memory model: atomics of different warps and blocks come in any order, so results land in each other's places
// before: accepted
// should: wrong race unstable
// before-cuda: wrong
// device: both
//! workspace next[1] : i32
//! memset next = 0
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, next, R*C)
extern "C" __global__ void relu(const float *x, float *y, int *next, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    int to = atomicAdd(next, 1);
    y[to] = x[i] < 0.0f ? 0.0f : x[i];
}
