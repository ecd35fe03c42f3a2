// task: tasks/kernelbench/level1/052_argmin_reduction.task
// set: B=8 M=512 N=511
// what: pairs of value and place, joined in shared memory so that the first of equals wins
//! launch place<<<[ceil_div(N, 32), min(B, 65535)], [32, 8]>>>(x, y, B, M, N)
static __device__ bool before(float v, int i, float best, int at) {
    if (v != v || best != best)
        return v != v && (best == best || i < at);
    return v < best || (v == best && i < at);
}

extern "C" __global__ void place(const float *x, long long *y, int b, int m, int n) {
    __shared__ float value[8][32];
    __shared__ int index[8][32];
    int c = blockIdx.x * 32 + threadIdx.x;
    for (int k = blockIdx.y; k < b; k += gridDim.y) {
        float best = INFINITY;
        int at = INT_MAX;
        for (int i = threadIdx.y; c < n && i < m; i += 8) {
            float v = x[((long long)k * m + i) * n + c];
            if (before(v, i, best, at)) {
                best = v;
                at = i;
            }
        }
        value[threadIdx.y][threadIdx.x] = best;
        index[threadIdx.y][threadIdx.x] = at;
        __syncthreads();
        if (threadIdx.y == 0 && c < n) {
            for (int w = 1; w < 8; w++)
                if (before(value[w][threadIdx.x], index[w][threadIdx.x], best, at)) {
                    best = value[w][threadIdx.x];
                    at = index[w][threadIdx.x];
                }
            y[(long long)k * n + c] = at;
        }
        __syncthreads();
    }
}
