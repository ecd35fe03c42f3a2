// task: tasks/kernelbench/level1/089_cumsum.task
// set: B=256 D=4096
// what: a block a row: warp scans, a scan of the warps, a carry from tile to tile
//! launch scan<<<B, 256>>>(x, y, D)
extern "C" __global__ void scan(const float *x, float *y, int d) {
    __shared__ float warps[8];
    long long base = (long long)blockIdx.x * d;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float carry = 0.0f;
    for (int tile = 0; tile < d; tile += 256) {
        int j = tile + threadIdx.x;
        float v = j < d ? x[base + j] : 0.0f;
        for (int step = 1; step < 32; step *= 2) {
            float left = __shfl_up_sync(0xffffffffu, v, step);
            if (lane >= step)
                v += left;
        }
        if (lane == 31)
            warps[warp] = v;
        __syncthreads();
        float before = carry, all = 0.0f;
        for (int w = 0; w < 8; w++) {
            if (w < warp)
                before += warps[w];
            all += warps[w];
        }
        if (j < d)
            y[base + j] = before + v;
        carry += all;
        __syncthreads();
    }
}
