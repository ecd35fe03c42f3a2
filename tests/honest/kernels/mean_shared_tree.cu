// task: tasks/kernelbench/level1/048_mean_reduction.task
// set: B=8 M=512 N=511
// what: 32 columns a block, the rows shared by 8 warps, a tree in shared memory
//! launch mean<<<[ceil_div(N, 32), min(B, 65535)], [32, 8]>>>(x, y, B, M, N)
extern "C" __global__ void mean(const float *x, float *y, int b, int m, int n) {
    __shared__ float part[8][32];
    int c = blockIdx.x * 32 + threadIdx.x;
    for (int k = blockIdx.y; k < b; k += gridDim.y) {
        float sum = 0.0f;
        if (c < n)
            for (int i = threadIdx.y; i < m; i += 8)
                sum += x[((long long)k * m + i) * n + c];
        part[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        for (int step = 4; step > 0; step /= 2) {
            if (threadIdx.y < step)
                part[threadIdx.y][threadIdx.x] += part[threadIdx.y + step][threadIdx.x];
            __syncthreads();
        }
        if (threadIdx.y == 0 && c < n)
            y[(long long)k * n + c] = part[0][threadIdx.x] / m;
        __syncthreads();
    }
}
