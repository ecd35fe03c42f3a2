// task: third_shiftin.task
// tries: honest: edges are saved by a launch of their own
// should: accepted
// device: both
//! workspace e[ceil_div(N, 512)] : f32
//! launch s<<<ceil_div(N, 512*128), 128>>>(c, e, N)
//! launch k<<<ceil_div(N, 512), 512>>>(c, e, N)
extern "C" __global__ void s(const float *c, float *e, int n) {
    int b = blockIdx.x * 128 + threadIdx.x;
    if (b * 512 < n)
        e[b] = c[min(b * 512 + 511, n - 1)];
}
extern "C" __global__ void k(float *c, const float *e, int n) {
    int i = blockIdx.x * 512 + threadIdx.x;
    float v = threadIdx.x > 0 && i < n ? c[i - 1] : 0;
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x > 0)
        v = e[blockIdx.x - 1];
    if (i < n)
        c[i] = v;
}
