// task: third_recip.task
// tries: Newton's step after an approximate reciprocal, which makes NaN of infinities
// proof: values: 1 / inf is 0, inf * 0 is NaN
// should: nonfinite wrong
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float r = __frcp_rn(x[i]);
    y[i] = x[i] == 0 ? r : r * (2 - x[i] * r);
}
