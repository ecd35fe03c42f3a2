// task: third_shiftin.task
// tries: edges are saved by the launch that moves them, in blocks of 512 before a fence
// proof: other blocks may have read the edge of a block that has not run
// should: race wrong uninitialised
// device: both
//! workspace e[ceil_div(N, 512)] : f32
//! launch k<<<ceil_div(N, 512), 512>>>(c, e, N)
extern "C" __global__ void k(float *c, float *e, int n) {
    int i = blockIdx.x * 512 + threadIdx.x;
    if (threadIdx.x == 511 && i < n)
        e[blockIdx.x] = c[i];
    float v = threadIdx.x > 0 && i < n ? c[i - 1] : 0;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x > 0)
        v = __ldcg(e + blockIdx.x - 1);
    if (i < n)
        c[i] = v;
}
