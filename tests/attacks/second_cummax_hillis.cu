// task: second_cummax.task
// tries: a scan of the threads' maxima in shared memory reads and writes one array with one barrier a step
// proof: race: between a thread's store and its right neighbour's load of the same step
// shows: R=1 C=512
// should: race wrong
// device: both
//! launch k<<<R, 256>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    __shared__ float s[256];
    x += (int64_t)blockIdx.x * c, y += (int64_t)blockIdx.x * c;
    int t = threadIdx.x, per = (c + 255) / 256, from = min(c, t * per), to = min(c, from + per);
    auto mx = [](float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); };
    float m = -INFINITY;
    for (int j = from; j < to; j++)
        m = mx(m, x[j]);
    s[t] = m;
    for (int d = 1; d < 256; d *= 2) {
        __syncthreads();
        if (t >= d)
            s[t] = mx(s[t], s[t - d]);
    }
    __syncthreads();
    m = t ? s[t - 1] : -INFINITY;
    for (int j = from; j < to; j++)
        y[j] = m = mx(m, x[j]);
}
