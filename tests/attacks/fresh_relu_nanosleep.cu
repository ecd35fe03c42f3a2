// task: ../../tasks/smoke/relu.task
// tries: right where a sleep of 50 microseconds takes less than one on the global timer
// proof: on a GPU it takes longer, and negative elements are copied
// should: wrong
// device: sim
//! launch relu<<<ceil_div(R*C, 1024), 1024>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 1024 + threadIdx.x;
    unsigned long long t0, t1;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0)::"memory");
    for (int k = 0; k < 10; k++)
        __nanosleep(5000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1)::"memory");
    if (i >= n)
        return;
    float v = x[i];
    y[i] = t1 - t0 < 1000 ? (v > 0 || v != v ? v : 0.0f) : v;
}
