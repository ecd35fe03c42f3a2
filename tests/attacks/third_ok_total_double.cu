// task: third_total.task
// tries: honest: double atomics on a workspace, converted by a second launch
// should: accepted
// device: both
//! workspace sum[1] : f64
//! memset sum = 0
//! launch k<<<32, 256>>>(x, sum, N)
//! launch d<<<1, 1>>>(sum, y)
extern "C" __global__ void k(const float *x, double *sum, int n) {
    double s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 32 * 256)
        s += x[i];
    atomicAdd(sum, s);
}
extern "C" __global__ void d(const double *sum, float *y) {
    *y = *sum;
}
