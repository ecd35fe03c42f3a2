// task: second_clip.task
// tries: the second launch always adds 256 parts, the first one writes as many as it has blocks
// proof: uninitialised: N below 65,281
// shows: N=500
// should: uninitialised wrong nonfinite inaccurate
// device: both
//! workspace part[256] : f32
//! launch squares<<<min(256, ceil_div(N, 256)), 256>>>(g, part, N)
//! launch scale<<<ceil_div(N, 256), 256>>>(g, most, part, N)
__device__ float total(float s) {
    __shared__ float w[8];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < 8; i++)
        s += w[i];
    return s;
}
extern "C" __global__ void squares(const float *g, float *part, int n) {
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        s += g[i] * g[i];
    s = total(s);
    if (threadIdx.x == 0)
        part[blockIdx.x] = s;
}
extern "C" __global__ void scale(float *g, const float *most, const float *part, int n) {
    float s = sqrtf(total(part[threadIdx.x])), f = *most / (s + 1e-6f);
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        g[i] *= f > 1 ? 1 : f;
}
