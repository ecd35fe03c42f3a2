// Known traffic, line by line. nvcc -ptx -lineinfo -arch=sm_90a
#include <cassert>
extern "C" __global__ void patterns(const float *x, float *y) {
    __shared__ float s[32 * 33];
    int t = threadIdx.x;
    float a = x[t];           // global.row
    float b = x[t * 32];      // global.column
    s[t] = a;                 // shared.row
    s[t * 32] = b;            // shared.column
    __syncwarp();
    float c = s[0];           // shared.broadcast
    float d = s[t * 33 % 64]; // shared.skewed
    float e = s[t * 2 % 64];  // shared.even
    if (t & 1)                // branch
        c = c * d;            // odd
    y[blockIdx.x * 32 + t] = a + b + c + d + e;
}
extern "C" __global__ void wide(const float4 *x, float4 *y) {
    __shared__ float4 s[64];
    int t = threadIdx.x;
    s[t] = x[t];              // wide.row
    s[t + 32] = s[t];         // wide.copy
    __syncwarp();
    y[blockIdx.x * 32 + t] = s[t * 2 % 64]; // wide.even
}
extern "C" __global__ void asserts(int *x) {
    assert(threadIdx.x < 40); // assert
    x[threadIdx.x] = 1;
}
