// task: third_deconv.task
// tries: honest: the four phases of the output by loops that skip what no input reaches
// should: accepted
// device: both
//! launch k<<<[ceil_div(2*W-1, 32), 2*H-1, N*O], 32>>>(x, w, b, y, C, O, H, W)
extern "C" __global__ void k(const float *x, const float *w, const float *b, float *y, int cc, int oo, int hh, int ww) {
    int q = blockIdx.x * 32 + threadIdx.x, p = blockIdx.y, o = blockIdx.z % oo, n = blockIdx.z / oo;
    int q2 = 2 * ww - 1;
    if (q >= q2)
        return;
    float a = 0;
    for (int r = (p + 1) % 2; r < 3; r += 2)
        for (int s = (q + 1) % 2; s < 3; s += 2) {
            int u = (p + 1 - r) / 2, v = (q + 1 - s) / 2;
            if (u >= hh || v >= ww)
                continue;
            for (int c = 0; c < cc; c++)
                a += x[((n * cc + c) * hh + u) * ww + v] * w[((c * oo + o) * 3 + r) * 3 + s];
        }
    y[((int64_t)blockIdx.z * gridDim.y + p) * q2 + q] = a + b[o];
}
