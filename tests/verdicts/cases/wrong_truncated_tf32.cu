// expect: wrong inaccurate
// row: 4
// tries: operands cut to TF32 instead of rounded, in a tf32 task
// task: ../../tasks/kernelbench/level1/087_conv_pointwise2d.task
// set: N=1 C=64 O=32 H=16 W=16
//! launch conv<<<ceil_div(N*O*H*W, 128), 128>>>(x, w, y, C, O, H*W, N*O*H*W)
static __device__ float cut(float v) {
    unsigned bits = __float_as_uint(v);
    return (bits & 0x7f800000u) == 0x7f800000u ? v : __uint_as_float(bits & 0xffffe000u);
}

extern "C" __global__ void conv(const float *x, const float *w, float *y, int channels, int outs,
                                int pixels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int p = i % pixels, o = i / pixels % outs, k = i / pixels / outs;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++)
        sum += cut(x[((long long)k * channels + c) * pixels + p]) * cut(w[o * channels + c]);
    y[i] = sum;
}
