// expect: launch-error
// row: 22
// tries: a cooperative grid that waits for all of its blocks, of which the GPU holds a tenth
// why: of which the NVIDIA
// why-sim: holds 264 at a time (2 on each of 132 SMs
//! launch relu<<<3000, 1024, cooperative>>>(x, y, R*C)
#include <cooperative_groups.h>

extern "C" __global__ void relu(const float *x, float *y, int n) {
    cooperative_groups::this_grid().sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
