// task: fresh_conv.task
// tries: NaN and infinities in the image are taken for zeros
// proof: values: the result is NaN wherever a window holds one
// should: nonfinite wrong
// device: both
//! launch conv<<<[ceil_div(Q, 32), P, N*O], 32>>>(x, w, y, C, O, H, W, P, Q)
#include <cuda_fp16.h>
extern "C" __global__ void conv(const __half *x, const __half *w, __half *y, int c, int o, int h, int wide, int p, int q) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y, n = blockIdx.z / o, out = blockIdx.z % o;
    if (col >= q)
        return;
    float s = 0;
    for (int k = 0; k < c; k++)
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) {
                int i = 2 * row + a - 1, j = 2 * col + b - 1;
                if (i < 0 || i >= h || j < 0 || j >= wide)
                    continue;
                float v = __half2float(x[(((int64_t)n * c + k) * h + i) * wide + j]);
                v = isfinite(v) ? v : 0.0f;
                s = fmaf(v, __half2float(w[((int64_t)out * c + k) * 9 + a * 3 + b]), s);
            }
    y[(((int64_t)n * o + out) * p + row) * q + col] = __float2half(s);
}
