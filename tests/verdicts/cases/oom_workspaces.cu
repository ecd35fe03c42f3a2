// expect: out-of-memory
// expect-cuda: skip it has memory for them
// row: 23
// tries: two workspaces, together more than the simulator has for all
// why: workspace second of 2147483652 bytes
//! workspace first[512*1024*1024] : f32
//! workspace second[512*1024*1024 + 1] : f32
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, first, second, y, R*C)
extern "C" __global__ void relu(const float *x, float *first, float *second, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
