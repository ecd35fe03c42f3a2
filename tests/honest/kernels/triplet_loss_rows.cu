// task: tasks/kernelbench/level1/099_triplet_margin_loss.task
// set: B=512 D=1024
// what: both distances of a row in one pass, the mean over the rows in a second kernel
//! workspace row[B] : f32
//! launch distances<<<B, 128>>>(anchor, positive, negative, row, D)
//! launch mean<<<1, 256>>>(row, loss, B)
extern "C" __global__ void distances(const float *a, const float *p, const float *n, float *row,
                                     int d) {
    __shared__ float near[4], far[4];
    long long base = (long long)blockIdx.x * d;
    float u = 0.0f, v = 0.0f;
    for (int j = threadIdx.x; j < d; j += 128) {
        float x = a[base + j] - p[base + j] + 1e-6f, y = a[base + j] - n[base + j] + 1e-6f;
        u += x * x;
        v += y * y;
    }
    for (int step = 16; step > 0; step /= 2) {
        u += __shfl_xor_sync(0xffffffffu, u, step);
        v += __shfl_xor_sync(0xffffffffu, v, step);
    }
    if (threadIdx.x % 32 == 0) {
        near[threadIdx.x / 32] = u;
        far[threadIdx.x / 32] = v;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        u = sqrtf((near[0] + near[1]) + (near[2] + near[3]));
        v = sqrtf((far[0] + far[1]) + (far[2] + far[3]));
        float loss = u - v + 1.0f;
        row[blockIdx.x] = loss < 0.0f ? 0.0f : loss;
    }
}

extern "C" __global__ void mean(const float *row, float *loss, int rows) {
    __shared__ float shared[256];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < rows; i += 256)
        sum += row[i];
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *loss = shared[0] / rows;
}
