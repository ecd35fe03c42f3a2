// task: second_cummax.task
// tries: tiles of 256 by shuffles; the maxima of the eight warps are combined for the warps above, but the carry to the next tile is that of the last warp alone
// proof: values: a row whose largest element lies in warps 0 to 6 of a tile, and the next tile begins below it
// shows: R=2 C=600
// should: wrong inaccurate
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
        for (int i = 0; i < t / 32; i++)
            own = mx(own, w[i]);
        if (j0 + t < c)
            y[j0 + t] = own;
        carry = mx(carry, w[7]);
        __syncthreads();
    }
}
