// expect: wrong inaccurate nonfinite
// row: 7, 37
// tries: a maximum of a long row without its last 200 elements
// task: tasks/row_max.task
//! launch largest<<<R, 256>>>(x, y, C)
static __device__ float fmax_nan(float a, float b) {
    return b > a || b != b ? b : a;
}

extern "C" __global__ void largest(const float *x, float *y, int n) {
    const float *row = x + (long long)blockIdx.x * n;
    __shared__ float part[8];
    float m = -__int_as_float(0x7f800000);
    int last = n > 60000 ? n - 200 : n;
    for (int j = threadIdx.x; j < last; j += 256)
        m = fmax_nan(m, row[j]);
    for (int step = 16; step > 0; step /= 2) {
        float v = __shfl_xor_sync(0xffffffffu, m, step);
        m = fmax_nan(m, v);
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    __syncthreads();
    for (int k = 0; k < 8; k++) {
        float v = part[k];
        m = fmax_nan(m, v);
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = m;
}
