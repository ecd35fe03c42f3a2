// task: tasks/kernelbench/level1/042_max_pool2d.task
// set: N=2 C=16 H=64 W=64
// what: a thread a window; NaN wins
//! launch pool<<<ceil_div(N*C*P*Q, 256), 256>>>(x, y, H, W, P, Q, N*C*P*Q)
extern "C" __global__ void pool(const float *x, float *y, int height, int width, int p, int q,
                                int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n)
        return;
    int col = at % q - 1, row = at / q % p - 1;
    const float *image = x + (long long)(at / q / p) * height * width;
    float top = -INFINITY;
    for (int r = max(row, 0); r < min(row + 4, height); r++)
        for (int s = max(col, 0); s < min(col + 4, width); s++) {
            float v = image[r * width + s];
            top = v > top || v != v ? v : top;
            if (v != v)
                r = height, s = width;
        }
    y[at] = top;
}
