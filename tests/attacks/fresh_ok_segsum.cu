// task: fresh_segsum.task
// tries: honest: each warp finds its segment by halving
// proof: none; it is right
// should: accepted
// device: both
//! launch sums<<<ceil_div(S, 4), 128>>>(seg, x, y, N, S)
__device__ int first_of(const int *seg, int n, int s) {
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (seg[mid] < s)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
extern "C" __global__ void sums(const int *seg, const float *x, float *y, int n, int segments) {
    int s = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (s >= segments)
        return;
    int from = first_of(seg, n, s), to = first_of(seg, n, s + 1);
    float sum = 0, more = 0;
    for (int i = from + lane; i < to; i += 64) {
        sum += x[i];
        if (i + 32 < to)
            more += x[i + 32];
    }
    sum += more;
    for (int k = 16; k; k /= 2)
        sum += __shfl_xor_sync(~0u, sum, k);
    if (lane == 0)
        y[s] = sum;
}
