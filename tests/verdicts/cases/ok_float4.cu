// expect: accepted
// row: -
// tries: honest: vectors
//! let V = 4
//! require R*C % V == 0
//! launch relu<<<ceil_div(R*C // V, 128), 128>>>(x, y, R*C // V)
extern "C" __global__ void relu(const float4 *x, float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 v = x[i];
    v.x = v.x < 0.0f ? 0.0f : v.x;
    v.y = v.y < 0.0f ? 0.0f : v.y;
    v.z = v.z < 0.0f ? 0.0f : v.z;
    v.w = v.w < 0.0f ? 0.0f : v.w;
    y[i] = v;
}
