// task: tasks/kernelbench/level1/087_conv_pointwise2d.task
// set: N=2 C=64 O=64 H=32 W=32
// what: a 1x1 convolution as mma.sync in TF32, operands rounded to nearest
//! require N <= 65535
//! let X = H*W
//! launch conv<<<[ceil_div(X, 32), ceil_div(O, 16), N], 128>>>(x, w, y, C, O, X)
static __device__ unsigned tf32(float v) {
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}

extern "C" __global__ void conv(const float *x, const float *w, float *y, int channels, int outs,
                                int pixels) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int row = blockIdx.y * 16 + g, col = blockIdx.x * 32 + threadIdx.x / 32 * 8;
    const float *image = x + (long long)blockIdx.z * channels * pixels;
    float *out = y + (long long)blockIdx.z * outs * pixels;
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < channels; k += 8) {
        unsigned a[4], b[2];
        for (int u = 0; u < 4; u++) {
            int o = row + u % 2 * 8, i = k + t + u / 2 * 4;
            a[u] = tf32(o < outs && i < channels ? w[(long long)o * channels + i] : 0.0f);
        }
        for (int u = 0; u < 2; u++) {
            int i = k + t + u * 4, p = col + g;
            b[u] = tf32(i < channels && p < pixels ? image[(long long)i * pixels + p] : 0.0f);
        }
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    for (int u = 0; u < 4; u++) {
        int o = row + u / 2 * 8, p = col + 2 * t + u % 2;
        if (o < outs && p < pixels)
            out[(long long)o * pixels + p] = c[u];
    }
}
