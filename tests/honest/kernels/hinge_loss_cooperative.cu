// task: tasks/kernelbench/level1/100_hinge_loss.task
// set: B=512 D=2048
// what: one cooperative launch, the grid meets between the two steps of the sum
#include <cooperative_groups.h>
//! workspace part[132] : f32
//! launch hinge<<<132, 256, cooperative>>>(predictions, targets, part, loss, B, D)
static __device__ float block_sum(float v, float *shared) {
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    return shared[0];
}

extern "C" __global__ void hinge(const float *p, const float *t, float *part, float *loss, int rows,
                                 int cols) {
    __shared__ float shared[256];
    long long n = (long long)rows * cols;
    float sum = 0.0f;
    for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < n;
         i += (long long)gridDim.x * 256) {
        float v = 1.0f - p[i] * t[i % cols];
        sum += v < 0.0f ? 0.0f : v;
    }
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
    cooperative_groups::this_grid().sync();
    if (blockIdx.x != 0)
        return;
    sum = block_sum(threadIdx.x < gridDim.x ? part[threadIdx.x] : 0.0f, shared);
    if (threadIdx.x == 0)
        *loss = sum / (float)n;
}
