// task: fresh_nesterov.task
// tries: two launches; the second one computes the momentum again from the one that the first has written
// proof: values: everywhere
// shows: N=64
// should: wrong inaccurate
// device: both
//! launch momentum<<<ceil_div(N, 256), 256>>>(m, g, N)
//! launch step<<<ceil_div(N, 256), 256>>>(p, m, g, rate, N)
extern "C" __global__ void momentum(float *m, const float *g, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        m[i] = 0.9f * m[i] + g[i];
}
extern "C" __global__ void step(float *p, const float *m, const float *g, const float *rate, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        p[i] -= *rate * (g[i] + 0.9f * (0.9f * m[i] + g[i]));
}
