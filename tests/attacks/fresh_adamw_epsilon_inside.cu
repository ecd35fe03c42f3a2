// task: ../../tasks/layers/adamw_step.task
// tries: the 1e-8 is added under the root
// proof: values: with second moments of 0 and a gradient of 1e-6 the step is smaller by a factor
// data: inout v[N] : f32 ~ zeros; in g[N] : f32 ~ normal(0, 1e-6)
// should: wrong inaccurate
// device: both
//! launch step<<<ceil_div(N, 256), 256>>>(p, m, v, g, rate, c1, c2, N)
extern "C" __global__ void step(float *p, float *m, float *v, const float *g, const float *rate, const float *c1, const float *c2, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float d = g[i], m1 = 0.9f * m[i] + 0.1f * d, v1 = 0.999f * v[i] + 0.001f * d * d;
    m[i] = m1;
    v[i] = v1;
    p[i] = p[i] * (1 - 0.01f * *rate) - *rate * (m1 / *c1) / sqrtf(v1 / *c2 + 1e-8f);
}
