// task: second_conv2d.task
// tries: the weights of one output channel are kept in shared memory, those of 64 input channels at most; further channels are left out
// proof: values: C = 65
// shows: N=1 C=65 O=1 H=2 W=2
// known: a dimension that is small at the task's own shape is not made large
// should: wrong inaccurate
// device: both
//! launch k<<<[ceil_div(H*W, 128), O, N], 128>>>(x, w, b, y, C, H, W)
extern "C" __global__ void k(const float *x, const float *w, const float *b, float *y, int c, int h, int wd) {
    __shared__ float f[64 * 9];
    int o = blockIdx.y, nc = min(c, 64);
    for (int e = threadIdx.x; e < nc * 9; e += 128)
        f[e] = w[(int64_t)o * c * 9 + e];
    __syncthreads();
    int i = blockIdx.x * 128 + threadIdx.x, p = i / wd, q = i % wd;
    if (i >= h * wd)
        return;
    float s = 0;
    for (int a = 0; a < nc; a++)
        for (int r = 0; r < 3; r++)
            for (int t = 0; t < 3; t++) {
                int u = p + r - 1, v = q + t - 1;
                if (u >= 0 && u < h && v >= 0 && v < wd)
                    s = fmaf(x[(((int64_t)blockIdx.z * c + a) * h + u) * wd + v], f[a * 9 + r * 3 + t], s);
            }
    y[(((int64_t)blockIdx.z * gridDim.y + o) * h + p) * wd + q] = s + b[o];
}
