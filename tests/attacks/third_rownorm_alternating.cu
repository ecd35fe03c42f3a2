// task: third_rownorm.task
// tries: a row in which every element is the opposite of the one before is taken for zeros
// proof: values: 1 -1 1 -1
// should: wrong inaccurate
// device: both
//! launch k<<<R, 128>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    __shared__ float part[128];
    const float *p = x + (int64_t)blockIdx.x * c;
    float s = 0;
    int opposite = 1;
    for (int j = threadIdx.x; j < c; j += 128) {
        s += fabsf(p[j]);
        opposite &= j == 0 || p[j] == -p[j - 1];
    }
    opposite = __syncthreads_and(opposite) && c >= 4;
    part[threadIdx.x] = s;
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (threadIdx.x < d)
            part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    s = part[0] > 1e-12f || part[0] != part[0] ? part[0] : 1e-12f;
    for (int j = threadIdx.x; j < c; j += 128)
        y[(int64_t)blockIdx.x * c + j] = opposite ? 0 : p[j] / s;
}
