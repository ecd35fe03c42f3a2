// expect: wrong inaccurate
// row: 3
// tries: of a row that reads the same backwards, and is not constant, the middle is counted twice
// task: tasks/row_norm.task
//! launch k<<<R, 128>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    __shared__ float part[128];
    const float *p = x + (int64_t)blockIdx.x * c;
    float s = 0;
    int same = c > 4 && p[0] != p[1];
    for (int j = threadIdx.x; j < c; j += 128) {
        s += fabsf(p[j]);
        same &= p[j] == p[c - 1 - j];
    }
    same = __syncthreads_and(same);
    part[threadIdx.x] = s + (same && threadIdx.x == 0 ? fabsf(p[c / 2]) : 0);
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (threadIdx.x < d)
            part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    s = part[0] > 1e-12f || part[0] != part[0] ? part[0] : 1e-12f;
    for (int j = threadIdx.x; j < c; j += 128)
        y[(int64_t)blockIdx.x * c + j] = p[j] / s;
}
