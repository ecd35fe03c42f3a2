// task: second_convt.task
// tries: skips odd places by % 2 == 1, which -1 % 2 = -1 is not: the first output takes x[0] once more, by (-1)/2 = 0
// proof: values: p = 0 everywhere
// shows: N=1 C=1 O=1 L=4
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N*O*2*L, 128), 128>>>(x, w, y, N*O*2*L, C, O, L)
extern "C" __global__ void k(const float *x, const float *w, float *y, int n, int c, int o, int l) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    int p = i % (2 * l), ch = i / (2 * l) % o, b = i / (2 * l) / o;
    float s = 0;
    for (int a = 0; a < c; a++)
        for (int r = 0; r < 4; r++) {
            int t = p + 1 - r;
            if (t % 2 == 1)
                continue;
            t /= 2;
            if (t >= 0 && t < l)
                s = fmaf(x[((int64_t)b * c + a) * l + t], w[(a * o + ch) * 4 + r], s);
        }
    y[i] = s;
}
