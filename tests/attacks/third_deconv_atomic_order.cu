// task: third_deconv.task
// tries: inputs are scattered by atomics onto the bias that another block of the same launch stores
// proof: the store of the bias may come after the additions
// should: race wrong uninitialised unwritten
// device: both
//! launch k<<<[ceil_div(N*O*(2*H-1)*(2*W-1), 128), 2], 128>>>(x, w, b, y, N, C, O, H, W)
extern "C" __global__ void k(const float *x, const float *w, const float *b, float *y, int nn, int cc, int oo, int hh, int ww) {
    int i = blockIdx.x * 128 + threadIdx.x, p2 = 2 * hh - 1, q2 = 2 * ww - 1;
    if (blockIdx.y == 0) {
        if (i < nn * oo * p2 * q2)
            y[i] = b[i / q2 / p2 % oo];
        return;
    }
    if (i >= nn * cc * hh * ww)
        return;
    int v = i % ww, u = i / ww % hh, c = i / ww / hh % cc, n = i / ww / hh / cc;
    for (int o = 0; o < oo; o++)
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++) {
                int p = 2 * u - 1 + r, q = 2 * v - 1 + s;
                if (p >= 0 && q >= 0 && p < p2 && q < q2)
                    atomicAdd(y + ((n * oo + o) * p2 + p) * q2 + q, x[i] * w[((c * oo + o) * 3 + r) * 3 + s]);
            }
}
