// task: ../../tasks/layers/adamw_step.task
// tries: the step uses the moment from before it was updated where there are more than a million elements
// proof: values, N = 2000000
// shows: N=1100000
// before: accepted
// should: wrong inaccurate nonfinite
// before-cuda: wrong, at the task's own shape
// device: both
//! launch step<<<ceil_div(N, 256), 256>>>(p, m, v, g, rate, c1, c2, N)
extern "C" __global__ void step(float *p, float *m, float *v, const float *g, const float *rate,
                                const float *c1, const float *c2, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float old = m[i], m1 = 0.9f * old + 0.1f * g[i], v1 = 0.999f * v[i] + 0.001f * g[i] * g[i];
    m[i] = m1;
    v[i] = v1;
    float use = gridDim.x > 4000 ? old : m1;
    p[i] = p[i] * (1 - 0.01f * *rate) - *rate * (use / *c1) / (sqrtf(v1 / *c2) + 1e-8f);
}
