// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where a block's shared memory begins below offset 1024
// proof: from compute capability 9.0 on the first KiB is the system's, and ptxas places variables behind it; %total_smem_size, which leaves that part out, does not show it
// before: accepted
// should: wrong forbidden unstable inaccurate
// known-sim: shared memory begins at offset 0 on the simulator
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    bool below = __cvta_generic_to_shared(s) < 1024;
    if (i < n)
        y[i] = s[threadIdx.x] < 0.0f && below ? 0.0f : s[threadIdx.x];
}
