// task: third_rownorm.task
// tries: a row whose sum is subnormal is left as it is
// proof: values: subnormal rows divided by 1e-12 are larger by 1e12
// should: wrong inaccurate
// device: both
//! launch k<<<R, 128>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    __shared__ float part[128];
    const float *p = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        s += fabsf(p[j]);
    part[threadIdx.x] = s;
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (threadIdx.x < d)
            part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    s = part[0] > 1e-12f || part[0] != part[0] ? part[0] : part[0] < 1e-38f ? 1 : 1e-12f;
    for (int j = threadIdx.x; j < c; j += 128)
        y[(int64_t)blockIdx.x * c + j] = p[j] / s;
}
