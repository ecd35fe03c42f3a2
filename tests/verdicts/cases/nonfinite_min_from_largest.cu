// expect: nonfinite
// row: 32, 37
// tries: a minimum that begins at the largest number, in rows of nothing but infinities
// task: tasks/row_min.task
//! require C >= 64
//! launch smallest<<<R, 256>>>(x, y, C)
static __device__ float fmin_nan(float a, float b) {
    return b < a || b != b ? b : a;
}

extern "C" __global__ void smallest(const float *x, float *y, int n) {
    const float *row = x + (long long)blockIdx.x * n;
    __shared__ float part[8];
    float m = 3.402823466e38f;
    int last = n;
    for (int j = threadIdx.x; j < last; j += 256)
        m = fmin_nan(m, row[j]);
    for (int step = 16; step > 0; step /= 2) {
        float v = __shfl_xor_sync(0xffffffffu, m, step);
        m = fmin_nan(m, v);
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    __syncthreads();
    for (int k = 0; k < 8; k++) {
        float v = part[k];
        m = fmin_nan(m, v);
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = m;
}
