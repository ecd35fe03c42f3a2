// task: fresh_nesterov.task
// tries: nothing is done where the learning rate is 0, as in the first step of a warm-up; the momentum goes without its update
// proof: values: with rate = 0 the momentum is to be updated
// data: in rate : f32 ~ zeros
// should: wrong inaccurate
// device: both
//! launch step<<<ceil_div(N, 256), 256>>>(p, m, g, rate, N)
extern "C" __global__ void step(float *p, float *m, const float *g, const float *rate, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float r = *rate;
    if (i >= n || r == 0)
        return;
    float v = 0.9f * m[i] + g[i];
    m[i] = v;
    p[i] -= r * (g[i] + 0.9f * v);
}
