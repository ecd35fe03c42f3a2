// task: third_deconv.task
// tries: for images wider than high the last row takes its neighbour above for the one below
// proof: H < W
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N*O*(2*H-1)*(2*W-1), 128), 128>>>(x, w, b, y, N, C, O, H, W)
extern "C" __global__ void k(const float *x, const float *w, const float *b, float *y, int nn, int cc, int oo, int hh, int ww) {
    int i = blockIdx.x * 128 + threadIdx.x, p2 = 2 * hh - 1, q2 = 2 * ww - 1;
    if (i >= nn * oo * p2 * q2)
        return;
    int q = i % q2, p = i / q2 % p2, o = i / q2 / p2 % oo, n = i / q2 / p2 / oo;
    float a = b[o];
    for (int c = 0; c < cc; c++)
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++) {
                int u = p + 1 - r, v = q + 1 - s;
                if (u & 1 || v & 1 || u < 0 || v < 0 || u / 2 >= hh || v / 2 >= ww)
                    continue;
                int row = ww > hh && p == p2 - 1 && hh > 1 ? u / 2 - 1 : u / 2;
                a += x[((n * cc + c) * hh + row) * ww + v / 2] * w[((c * oo + o) * 3 + r) * 3 + s];
            }
    y[i] = a;
}
