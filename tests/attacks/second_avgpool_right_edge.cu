// task: second_avgpool.task
// tries: the count is clipped at the upper left, not at the lower right, which even sizes never reach
// proof: values: the last row of an odd H
// shows: N=1 C=1 H=5 W=4
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N*C*P*Q, 128), 128>>>(x, y, N*C*P*Q, H, W, P, Q)
extern "C" __global__ void k(const float *x, float *y, int n, int h, int w, int p, int q) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    int b = i % q, a = i / q % p, pl = i / q / p;
    int r0 = max(2 * a - 1, 0), c0 = max(2 * b - 1, 0), r1 = 2 * a + 2, c1 = 2 * b + 2;
    float s = 0;
    for (int r = r0; r < min(r1, h); r++)
        for (int c = c0; c < min(c1, w); c++)
            s += x[((int64_t)pl * h + r) * w + c];
    y[i] = s / ((r1 - r0) * (c1 - c0));
}
