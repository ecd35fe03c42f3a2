// task: tasks/kernelbench/level1/053_min_reduction.task
// set: B=8 M=512 N=512
// what: four columns a thread
//! require N % 4 == 0
//! let Q = N // 4
//! launch least<<<ceil_div(B*Q, 64), 64>>>(x, y, B*Q, M, Q)
static __device__ float smaller(float a, float b) { return a < b || a != a ? a : b; }

extern "C" __global__ void least(const float4 *x, float4 *y, int columns, int m, int q) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    const float4 *p = x + (long long)(c / q) * m * q + c % q;
    float4 low = p[0];
    for (int i = 1; i < m; i++) {
        float4 v = p[(long long)i * q];
        low.x = smaller(low.x, v.x);
        low.y = smaller(low.y, v.y);
        low.z = smaller(low.z, v.z);
        low.w = smaller(low.w, v.w);
    }
    y[c] = low;
}
