// task: second_bce.task
// tries: losses above 100 are held at 100, as BCELoss does for probabilities
// proof: values: x = 200, not t
// data: in x[R,C] : f32 ~ uniform(150, 200)
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, t, y, R*C)
extern "C" __global__ void k(const float *x, const bool *t, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = t[i] ? -x[i] : x[i];
    float l = (v > 0 || v != v ? v : 0) + log1pf(expf(-fabsf(v)));
    y[i] = l > 100 ? 100 : l;
}
