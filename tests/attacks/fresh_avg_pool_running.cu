// task: ../../tasks/kernelbench/level1/044_avg_pool1d.task
// tries: a running sum over 16 windows, the next element added and the oldest one taken away: what was lost beside a large element is lost after it
// proof: values: after 1e9 has left the window, the ones around it are gone
// data: rand u[N,C,L] ~ uniform(0, 1); in x[n < N, c < C, l < L] : f32 = if(l % 37 == 5, 1e9, u[n,c,l])
// should: wrong inaccurate nonfinite
// device: both
//! launch pool<<<[ceil_div(P, 1024), N*C], 64>>>(x, y, L, P)
extern "C" __global__ void pool(const float *x, float *y, int len, int p) {
    const float *row = x + (int64_t)blockIdx.y * len;
    float *out = y + (int64_t)blockIdx.y * p;
    int first = blockIdx.x * 1024 + threadIdx.x * 16;
    float s = 0;
    for (int r = 0; r < 7; r++) {
        int at = first + r - 4;
        s += at >= 0 && at < len ? row[at] : 0.0f;
    }
    for (int i = first; i < first + 16 && i < p; i++) {
        s += i + 3 < len ? row[i + 3] : 0.0f;
        out[i] = s / 8;
        s -= i - 4 >= 0 && i - 4 < len ? row[i - 4] : 0.0f;
    }
}
