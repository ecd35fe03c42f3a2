// task: second_convt.task
// tries: a thread for each input place adds its four products to the output by plain additions; neighbours share places
// proof: race: two threads add to one element without atomics
// shows: N=1 C=2 O=2 L=8
// should: race wrong inaccurate
// device: both
//! memset y = 0
//! launch k<<<[ceil_div(L, 64), O, N], 64>>>(x, w, y, C, O, L)
extern "C" __global__ void k(const float *x, const float *w, float *y, int c, int o, int l) {
    int t = blockIdx.x * 64 + threadIdx.x, ch = blockIdx.y, b = blockIdx.z;
    if (t >= l)
        return;
    for (int r = 0; r < 4; r++) {
        int p = 2 * t + r - 1;
        float s = 0;
        for (int a = 0; a < c; a++)
            s = fmaf(x[((int64_t)b * c + a) * l + t], w[(a * o + ch) * 4 + r], s);
        if (p >= 0 && p < 2 * l)
            y[((int64_t)b * o + ch) * 2 * l + p] += s;
    }
}
