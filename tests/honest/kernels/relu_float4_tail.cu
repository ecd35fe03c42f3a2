// task: tasks/kernelbench/level1/019_relu.task
// set: B=64 D=16384
// what: four elements a thread, the last few one by one
//! let N = B*D
//! launch relu<<<ceil_div(ceil_div(N, 4), 256), 256>>>(x, y, N)
static __device__ float rectified(float v) { return v < 0.0f ? 0.0f : v; }

extern "C" __global__ void relu(const float *x, float *y, long long n) {
    long long i = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 <= n) {
        float4 v = *(const float4 *)(x + i);
        v.x = rectified(v.x);
        v.y = rectified(v.y);
        v.z = rectified(v.z);
        v.w = rectified(v.w);
        *(float4 *)(y + i) = v;
        return;
    }
    for (; i < n; i++)
        y[i] = rectified(x[i]);
}
