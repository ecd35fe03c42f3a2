// task: second_down.task
// tries: rounded means of two rounded means, as __vavgu4 makes them
// proof: values: 0 0 0 1 gives 1, not 0
// shows: N=1 H=4 W=4
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N*H*W, 128), 128>>>(x, y, N*H*W, W)
extern "C" __global__ void k(const unsigned char *x, unsigned char *y, int n, int w) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    const unsigned char *p = x + (int64_t)(i / w) * 4 * w + i % w * 2;
    unsigned a = __vavgu4(p[0] | p[1] << 8, p[2 * w] | p[2 * w + 1] << 8);
    y[i] = ((a & 255) + (a >> 8 & 255) + 1) / 2;
}
