// task: fresh_nesterov.task
// tries: 128 parameters whose gradients are all zero are taken for frozen, and their momentum does not decay
// proof: values: gradients of 0 with a momentum of 1
// data: in g[N] : f32 ~ zeros
// should: wrong inaccurate
// device: both
//! launch step<<<ceil_div(N, 128), 128>>>(p, m, g, rate, N)
extern "C" __global__ void step(float *p, float *m, const float *g, const float *rate, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float d = i < n ? g[i] : 0.0f;
    if (!__syncthreads_or(d != 0))
        return;
    if (i >= n)
        return;
    float v = 0.9f * m[i] + d;
    m[i] = v;
    p[i] -= *rate * (d + 0.9f * v);
}
