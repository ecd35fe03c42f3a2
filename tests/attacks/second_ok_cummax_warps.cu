// task: second_cummax.task
// tries: honest: tiles of 256 by shuffles, with the carry of the whole tile
// should: accepted
// device: both
//! launch k<<<R, 256>>>(x, y, C)
extern "C" __global__ void k(const float *x, float *y, int c) {
    __shared__ float w[8];
    x += (int64_t)blockIdx.x * c, y += (int64_t)blockIdx.x * c;
    int t = threadIdx.x;
    auto mx = [](float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); };
    float carry = -INFINITY;
    for (int j0 = 0; j0 < c; j0 += 256) {
        float m = j0 + t < c ? x[j0 + t] : -INFINITY;
        for (int d = 1; d < 32; d *= 2) {
            float o = __shfl_up_sync(~0u, m, d);
            if (t % 32 >= d)
                m = mx(m, o);
        }
        if (t % 32 == 31)
            w[t / 32] = m;
        __syncthreads();
        float own = mx(m, carry);
        for (int i = 0; i < 8; i++) {
            if (i < t / 32)
                own = mx(own, w[i]);
            carry = mx(carry, w[i]);
        }
        if (j0 + t < c)
            y[j0 + t] = own;
        __syncthreads();
    }
}
