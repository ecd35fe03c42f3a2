// task: tasks/kernelbench/level1/096_huber_loss.task
// set: B=512 D=2048
// what: every block adds its share to the output, which the plan sets to zero
//! memset loss = 0
//! launch huber<<<min(264, ceil_div(B*D, 256)), 256>>>(predictions, targets, loss, B*D)
extern "C" __global__ void huber(const float *p, const float *t, float *loss, long long n) {
    __shared__ float warps[8];
    float sum = 0.0f;
    for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < n;
         i += (long long)gridDim.x * 256) {
        float d = fabsf(p[i] - t[i]);
        sum += d < 1.0f ? 0.5f * d * d : d - 0.5f;
    }
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int w = 1; w < 8; w++)
        sum += warps[w];
    atomicAdd(loss, sum / (float)n);
}
