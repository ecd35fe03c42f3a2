// task: tasks/kernelbench/level1/093_masked_cumsum.task
// set: B=256 D=4096
// what: each thread scans a run of elements, the runs' sums are scanned in shared memory
//! launch scan<<<B, 128>>>(x, mask, y, D)
extern "C" __global__ void scan(const float *x, const bool *mask, float *y, int d) {
    __shared__ float sums[128];
    long long base = (long long)blockIdx.x * d;
    int run = (d + 127) / 128, from = threadIdx.x * run, to = min(d, from + run);
    float sum = 0.0f;
    for (int j = from; j < to; j++)
        sum += x[base + j] * (mask[base + j] ? 1.0f : 0.0f);
    sums[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int t = 0; t < threadIdx.x; t++)
        sum += sums[t];
    for (int j = from; j < to; j++) {
        sum += x[base + j] * (mask[base + j] ? 1.0f : 0.0f);
        y[base + j] = sum;
    }
}
