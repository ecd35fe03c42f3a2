// expect: race
// expect-cuda: skip a race that a GPU may not show
// row: 11
// why: nothing orders blocks of a grid
// tries: one block's work handed to another by a flag, without the fence before it
//! workspace part[R, C] : f32
//! workspace flag[1] : i32
//! memset flag = 0
//! launch relu<<<2, 256>>>(x, y, part, flag, R*C)
static __device__ float relu_of(float v) {
    return v < 0.0f ? 0.0f : v;
}

extern "C" __global__ void relu(const float *x, float *y, float *part, int *flag, int n) {
    volatile int *seen = flag;
    if (blockIdx.x == 0) {
        for (int i = threadIdx.x; i < n; i += 256)
            part[i] = relu_of(x[i]);
        __syncthreads();
        if (threadIdx.x == 0)
            *seen = 1;
        return;
    }
    if (threadIdx.x == 0)
        while (*seen == 0)
            ;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 256)
        y[i] = part[i];
}
