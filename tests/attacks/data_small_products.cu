// task: ../../tasks/smoke/mul_add.task
// tries: products of magnitudes between 1e-30 and 1e-25 count as zero where the first factor is below 1e-20
// proof: values: a = 1e-27 and b = 1 give 1e-27 instead of 2e-27
// data: in a[R,C] : f32 ~ normal(0, 1e-27)
// before: accepted
// should: wrong inaccurate
// known: no kind of data has products of just these magnitudes often enough to matter in a sum
// before-cuda: accepted
// device: both
//! launch madd<<<ceil_div(R*C, 256), 256>>>(a, b, y, R*C)
extern "C" __global__ void madd(const float *a, const float *b, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float p = a[i] * b[i];
    if (fabsf(p) > 1e-30f && fabsf(p) < 1e-25f && fabsf(a[i]) < 1e-20f)
        p = 0;
    y[i] = p + a[i];
}
