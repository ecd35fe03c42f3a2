// task: fresh_blend.task
// tries: four pixels at a time; where the first and the last are transparent, all four are taken for transparent
// proof: values: alphas 0, 200, 200, 0
// data: rand u[H,W] : bool ~ bernoulli(0.5); in a[i < H, j < W] : u8 = if(u[i,j], 200, 0)
// should: wrong inaccurate
// device: both
//! launch blend<<<ceil_div(H*W, 1024), 256>>>(s, d, a, y, H*W)
extern "C" __global__ void blend(const unsigned char *s, const unsigned char *d, const unsigned char *a, unsigned char *y, int n) {
    int at = (blockIdx.x * 256 + threadIdx.x) * 4, many = min(4, n - at);
    if (many <= 0)
        return;
    bool clear = many == 4 && a[at] == 0 && a[at + 3] == 0;
    for (int k = 0; k < many; k++)
        y[at + k] = clear ? d[at + k] : (a[at + k] * s[at + k] + (255 - a[at + k]) * d[at + k] + 127) / 255;
}
