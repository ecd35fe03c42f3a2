// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where input and output lie less than 64 MiB apart
// proof: on a GPU they are two allocations with unmapped memory between them, at random places
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong or accepted, as addresses come out
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f && (uint64_t)(y > x ? y - x : x - y) < (1ull << 24) ? 0.0f : x[i];
}
