// task: second_dwconv.task
// tries: tiles of 16x16 with a halo of 2: the rows above and below and the columns beside are loaded, the corners are not
// proof: uninitialised: shared corners are read where a tile has another at its corner; at the edges they would be 0
// shows: N=1 C=1 H=40 W=40
// should: uninitialised wrong nonfinite inaccurate
// device: both
//! launch k<<<[ceil_div(W, 16), ceil_div(H, 16), N*C], [16, 16]>>>(x, w, y, C, H, W)
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, const __half *w, __half *y, int c, int h, int wd) {
    __shared__ float t[20][20];
    int px = blockIdx.x * 16, py = blockIdx.y * 16, a = threadIdx.x, b = threadIdx.y;
    x += (int64_t)blockIdx.z * h * wd, y += (int64_t)blockIdx.z * h * wd, w += blockIdx.z % c * 25;
    auto get = [&](int r, int s) { return r >= 0 && r < h && s >= 0 && s < wd ? __half2float(x[r * wd + s]) : 0.0f; };
    t[b + 2][a + 2] = get(py + b, px + a);
    if (b < 2) {
        t[b][a + 2] = get(py + b - 2, px + a);
        t[b + 18][a + 2] = get(py + b + 16, px + a);
    }
    if (a < 2) {
        t[b + 2][a] = get(py + b, px + a - 2);
        t[b + 2][a + 18] = get(py + b, px + a + 16);
    }
    if (a < 2 && b < 2 && (px == 0 || py == 0)) {
        t[b][a] = 0;
        t[b][a + 18] = get(py + b - 2, px + a + 16);
        t[b + 18][a] = get(py + b + 16, px + a - 2);
        t[b + 18][a + 18] = get(py + b + 16, px + a + 16);
    }
    __syncthreads();
    float s = 0;
    for (int r = 0; r < 5; r++)
        for (int q = 0; q < 5; q++)
            s = fmaf(t[b + r][a + q], __half2float(w[r * 5 + q]), s);
    if (py + b < h && px + a < wd)
        y[(py + b) * wd + px + a] = __float2half(s);
}
