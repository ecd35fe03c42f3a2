// task: fresh_conv.task
// tries: a padded copy of a row of 64 columns in shared memory; its right padding is set for even widths only
// proof: memory: for odd widths the last window reads shared memory that nothing wrote
// shows: N=1 C=2 O=2 H=5 W=7
// should: uninitialised wrong nonfinite race inaccurate
// device: both
//! launch conv<<<[P, N*O], 64>>>(x, w, y, C, O, H, W, P, Q)
#include <cuda_fp16.h>
extern "C" __global__ void conv(const __half *x, const __half *w, __half *y, int c, int o, int h, int wide, int p, int q) {
    __shared__ float line[1100];
    int row = blockIdx.x, n = blockIdx.y / o, out = blockIdx.y % o;
    for (int first = 0; first < q; first += 512) {
        int many = min(512, q - first);
        float s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int k = 0; k < c; k++)
            for (int a = 0; a < 3; a++) {
                int i = 2 * row + a - 1;
                if (i < 0 || i >= h)
                    continue;
                __syncthreads();
                for (int j = threadIdx.x; j <= 2 * many; j += 64) {
                    int col = 2 * first + j - 1;
                    if (col >= 0 && col < wide)
                        line[j] = __half2float(x[(((int64_t)n * c + k) * h + i) * wide + col]);
                    else if (col < 0 || wide % 2 == 0)
                        line[j] = 0;
                }
                __syncthreads();
                for (int u = 0, j = threadIdx.x; j < many; j += 64, u++)
                    for (int b = 0; b < 3; b++)
                        s[u] = fmaf(line[2 * j + b], __half2float(w[((int64_t)out * c + k) * 9 + a * 3 + b]), s[u]);
            }
        for (int u = 0, j = threadIdx.x; j < many; j += 64, u++)
            y[(((int64_t)n * o + out) * p + row) * q + first + j] = __float2half(s[u]);
    }
}
