// task: ../../tasks/smoke/relu.task
// set: R=128 C=1024
// tries: right where the time is before 1971
// proof: on a GPU %globaltimer counts nanoseconds of the epoch or of the uptime: far above 3e16 or, after a minute, above 6e10
// before: accepted
// should: wrong forbidden unstable inaccurate
// before-cuda: wrong
// device: both
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned long long v;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v));
    if (i < n)
        y[i] = x[i] < 0.0f && v < 60000000000ull ? 0.0f : x[i];
}
