// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: sees another block's flag by a volatile load and reads its work without a fence
// proof: by the memory model: a volatile load is relaxed; without a fence after it nothing orders the reads, which may come from an old line of the L1
// before: accepted
// should: race
// known-sim: volatile counts as acquire, as many honest kernels have it
// before-cuda: accepted: the lines are not in the L1
// device: both
//! workspace part[R, C] : f32
//! workspace flag[1] : i32
//! memset flag = 0
//! launch relu<<<2, 256>>>(x, y, part, flag, R*C)
extern "C" __global__ void relu(const float *x, float *y, float *part, int *flag, int n) {
    volatile int *seen = flag;
    if (blockIdx.x == 0) {
        for (int i = threadIdx.x; i < n; i += 256)
            part[i] = x[i] < 0.0f ? 0.0f : x[i];
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            *seen = 1;
        }
        return;
    }
    if (threadIdx.x == 0)
        while (*seen == 0)
            ;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 256)
        y[i] = part[i];
}
