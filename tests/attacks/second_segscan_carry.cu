// task: second_segscan.task
// tries: 32 elements at a time; the carry is added only where a tile has no flag at all, not also before its first flag
// proof: values: a segment that begins in one tile and ends within the next
// shows: R=2 C=64
// should: wrong inaccurate
// device: both
//! launch k<<<R, 32>>>(x, f, y, C)
extern "C" __global__ void k(const float *x, const bool *f, float *y, int c) {
    x += (int64_t)blockIdx.x * c, y += (int64_t)blockIdx.x * c, f += (int64_t)blockIdx.x * c;
    int t = threadIdx.x;
    float carry = 0;
    for (int j0 = 0; j0 < c; j0 += 32) {
        bool in = j0 + t < c, b = in && f[j0 + t];
        float v = in ? x[j0 + t] : 0;
        unsigned all = __ballot_sync(~0u, b), below = all & (0xffffffffu >> (31 - t));
        int head = below ? 31 - __clz(below) : 0;
        for (int d = 1; d < 32; d *= 2) {
            float o = __shfl_up_sync(~0u, v, d);
            if (t - d >= head)
                v += o;
        }
        if (!all)
            v += carry;
        if (in)
            y[j0 + t] = v;
        carry = __shfl_sync(~0u, v, 31);
    }
}
