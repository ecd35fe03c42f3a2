// task: tasks/kernelbench/level1/091_cumsum_reverse.task
// set: B=256 D=4096
// what: from the end, a Hillis-Steele scan in two halves of shared memory
//! launch scan<<<B, 256>>>(x, y, D)
extern "C" __global__ void scan(const float *x, float *y, int d) {
    __shared__ float half[2][256];
    long long base = (long long)blockIdx.x * d;
    int t = threadIdx.x;
    float carry = 0.0f;
    for (int tile = 0; tile < d; tile += 256) {
        int j = d - 1 - tile - t, from = 0;
        half[0][t] = j >= 0 ? x[base + j] : 0.0f;
        __syncthreads();
        for (int step = 1; step < 256; step *= 2) {
            half[1 - from][t] = half[from][t] + (t >= step ? half[from][t - step] : 0.0f);
            from = 1 - from;
            __syncthreads();
        }
        if (j >= 0)
            y[base + j] = carry + half[from][t];
        carry += half[from][255];
        __syncthreads();
    }
}
