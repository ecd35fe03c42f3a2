// task: second_rope.task
// tries: the second half is turned with the first half's new value
// proof: values: everywhere
// shows: T=2 H=1 D=4
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(T*H*D, 256), 256>>>(q, c, s, T*H*D, H, D)
extern "C" __global__ void k(float *q, const float *c, const float *s, int n, int h, int d) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    int row = i / d, f = i % d, t = row / h;
    float *p = q + (int64_t)row * 2 * d + f;
    float cs = c[(int64_t)t * d + f], sn = s[(int64_t)t * d + f];
    p[0] = p[0] * cs - p[d] * sn;
    p[d] = p[d] * cs + p[0] * sn;
}
