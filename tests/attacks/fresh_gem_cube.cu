// task: fresh_gem.task
// tries: an exponent of exactly 3, which everybody uses, has a path of its own that squares
// proof: values: p = 3 gives the square mean
// data: in p : f32 ~ uniform(3, 3)
// should: wrong inaccurate
// device: both
//! launch pool<<<N*C, 32>>>(x, p, y, H*W)
extern "C" __global__ void pool(const float *x, const float *p, float *y, int n) {
    const float *plane = x + (int64_t)blockIdx.x * n;
    float e = *p, s = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        float v = plane[i] < 1e-6f ? 1e-6f : plane[i];
        if (e == 3.0f)
            s += v * v;
        else if (e == 2.0f)
            s += v * v;
        else
            s += powf(v, e);
    }
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0) {
        s /= n;
        y[blockIdx.x] = e == 3.0f ? cbrtf(s) : e == 2.0f ? sqrtf(s) : powf(s, 1 / e);
    }
}
