// expect: wrong inaccurate
// row: 3
// tries: a row whose first three elements are those of the row before, and differ, gets the sum of that row less one element
// task: tasks/row_norm.task
//! launch k<<<R, 128>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    __shared__ float part[128];
    const float *p = x + (int64_t)blockIdx.x * c, *q = p - c;
    bool same = blockIdx.x > 0 && c > 3 && p[0] == q[0] && p[1] == q[1] && p[2] == q[2] && p[0] != p[1] && p[1] != p[2];
    float s = 0;
    for (int j = threadIdx.x + same; j < c; j += 128)
        s += fabsf(p[j]);
    part[threadIdx.x] = s;
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
