// task: ../../tasks/smoke/max_pool.task
// tries: honest: places outside are moved to the edge, which the window holds anyway
// proof: none; it is right
// should: accepted
// device: both
//! launch pool<<<[ceil_div(P*Q, 64), N*C], 64>>>(x, y, H, W, P, Q)
extern "C" __global__ void pool(const float *x, float *y, int h, int w, int p, int q) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= p * q)
        return;
    const float *plane = x + (int64_t)blockIdx.y * h * w;
    float m = plane[(2 * (i / q)) * w + 2 * (i % q)];
    for (int r = -1; r < 2; r++)
        for (int s = -1; s < 2; s++) {
            float v = plane[min(max(2 * (i / q) + r, 0), h - 1) * w + min(max(2 * (i % q) + s, 0), w - 1)];
            m = v > m || v != v ? v : m;
        }
    y[(int64_t)blockIdx.y * p * q + i] = m;
}
