// task: second_clip.task
// tries: one launch: every block works out the norm of all by itself and scales its part in place, while others still read it
// proof: race: wherever there are two blocks
// shows: N=2100
// should: race wrong inaccurate
// device: both
//! launch k<<<ceil_div(N, 8192), 1024>>>(g, most, N)
extern "C" __global__ void k(float *g, const float *most, int n) {
    __shared__ float w[32];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 1024)
        s += g[i] * g[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < 32; i++)
        s += w[i];
    float f = *most / (sqrtf(s) + 1e-6f);
    int end = min(n, ((int)blockIdx.x + 1) * 8192);
    for (int i = blockIdx.x * 8192 + threadIdx.x; i < end; i += 1024)
        g[i] *= f > 1 ? 1 : f;
}
