// task: tasks/smoke/swiglu.task
// what: two elements a thread where the count is even
//! require R*C % 2 == 0
//! launch swiglu<<<ceil_div(R*C // 2, 192), 192>>>(a, b, y, R*C // 2)
static __device__ float gated(float a, float b) { return a / (1.0f + expf(-a)) * b; }

extern "C" __global__ void swiglu(const float2 *a, const float2 *b, float2 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float2 u = a[i], v = b[i];
    y[i] = make_float2(gated(u.x, v.x), gated(u.y, v.y));
}
