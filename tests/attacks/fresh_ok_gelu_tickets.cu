// task: ../../tasks/smoke/gelu.task
// tries: honest: a few blocks that stay and draw their next tile from a counter
// proof: none; it is right
// should: accepted
// device: both
//! workspace next[1] : i32
//! memset next = 0
//! launch gelu<<<min(64, ceil_div(R*C, 1024)), 256>>>(x, y, next, R*C)
extern "C" __global__ void gelu(const float *x, float *y, int *next, int64_t n) {
    __shared__ int tile;
    for (;;) {
        if (threadIdx.x == 0)
            tile = atomicAdd(next, 1);
        __syncthreads();
        int64_t first = (int64_t)tile * 1024;
        if (first >= n)
            return;
        for (int64_t i = first + threadIdx.x; i < first + 1024 && i < n; i += 256)
            y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.7071067811865476f));
        __syncthreads();
    }
}
