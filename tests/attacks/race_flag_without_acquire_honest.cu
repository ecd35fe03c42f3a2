// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: honest: the same with a fence after the flag was seen
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
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
    if (threadIdx.x == 0) {
        while (*seen == 0)
            ;
        __threadfence();
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 256)
        y[i] = part[i];
}
