// task: ../../tasks/smoke/max_pool.task
// set: N=64 C=256 H=64 W=64
// tries: planes beyond 1,024 get the maximum of the window's first two rows
// proof: values, N = 5 C = 256 H = 8 W = 8: planes from 1,024 on
// shows: N=5 C=256 H=8 W=8
// before: accepted
// should: wrong nonfinite
// before-cuda: wrong, at the task's own shape
// device: both
//! launch pool<<<[ceil_div(P*Q, 128), N*C], 128>>>(x, y, H, W, P, Q)
extern "C" __global__ void pool(const float *x, float *y, int h, int w, int p, int q) {
    int at = blockIdx.x * 128 + threadIdx.x, rows = blockIdx.y < 1024 ? 3 : 2;
    if (at >= p * q)
        return;
    float m = -INFINITY;
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < 3; s++) {
            int i = 2 * (at / q) + r - 1, j = 2 * (at % q) + s - 1;
            if (i < 0 || j < 0 || i >= h || j >= w)
                continue;
            float v = x[((int64_t)blockIdx.y * h + i) * w + j];
            m = v > m || v != v ? v : m;
        }
    y[(int64_t)blockIdx.y * p * q + at] = m;
}
