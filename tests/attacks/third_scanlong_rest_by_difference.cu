// task: third_scanlong.task
// tries: what is left is the row's sum less the running sum
// proof: values: the last element of z is 0, and the one before it the last of x; rounding of large sums stays
// should: inaccurate wrong nonfinite
// device: both
//! launch k<<<R, 32>>>(x, y, z, C)
extern "C" __global__ void k(const float *x, float *y, float *z, int c) {
    const float *p = x + (int64_t)blockIdx.x * c;
    float *q = y + (int64_t)blockIdx.x * c, *r = z + (int64_t)blockIdx.x * c, carry = 0;
    for (int from = 0; from < c; from += 32) {
        int j = from + threadIdx.x;
        float v = j < c ? p[j] : 0;
        for (int d = 1; d < 32; d *= 2) {
            float w = __shfl_up_sync(~0u, v, d);
            v += (int)threadIdx.x >= d ? w : 0;
        }
        if (j < c)
            q[j] = carry + v;
        carry += __shfl_sync(~0u, v, 31);
    }
    __syncwarp();
    for (int j = threadIdx.x; j < c; j += 32)
        r[j] = carry - q[j];
}
