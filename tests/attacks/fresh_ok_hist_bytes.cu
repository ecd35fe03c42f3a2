// task: fresh_hist.task
// tries: honest: every thread counts in bytes, at most 255 elements
// proof: none; it is right
// should: accepted
// device: both
//! memset h = 0
//! launch count<<<[ceil_div(N, 128*255), ceil_div(V, 64)], 128>>>(t, h, N, V)
extern "C" __global__ void count(const int *t, int *h, int n, int v) {
    __shared__ unsigned char own[64][128];
    int first = blockIdx.y * 64;
    for (int b = 0; b < 64; b++)
        own[b][threadIdx.x] = 0;
    int64_t at = (int64_t)blockIdx.x * 128 * 255 + threadIdx.x;
    for (int i = 0; i < 255 && at < n; i++, at += 128) {
        int b = t[at] - first;
        if (b >= 0 && b < 64)
            own[b][threadIdx.x]++;
    }
    __syncthreads();
    if (threadIdx.x < 64 && first + threadIdx.x < v) {
        int s = 0;
        for (int k = 0; k < 128; k++)
            s += own[threadIdx.x][(k + threadIdx.x) % 128];
        atomicAdd(&h[first + threadIdx.x], s);
    }
}
