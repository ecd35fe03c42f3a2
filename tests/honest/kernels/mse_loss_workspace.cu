// task: tasks/kernelbench/level1/094_mse_loss.task
// set: B=512 D=2048
// what: partial sums to a workspace, one block adds them
//! let G = min(264, ceil_div(B*D, 256))
//! workspace part[G] : f32
//! launch partial<<<G, 256>>>(predictions, targets, part, B*D)
//! launch finish<<<1, 256>>>(part, loss, G, B*D)
static __device__ float block_sum(float v) {
    __shared__ float shared[256];
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    return shared[0];
}

extern "C" __global__ void partial(const float *p, const float *t, float *part, long long n) {
    float sum = 0.0f;
    for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < n;
         i += (long long)gridDim.x * 256) {
        float d = p[i] - t[i];
        sum += d * d;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
}

extern "C" __global__ void finish(const float *part, float *loss, int parts, long long n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < parts; i += 256)
        sum += part[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *loss = sum / (float)n;
}
