// task: fresh_segsum.task
// tries: of a segment at most 2,048 elements are added, but for the last segment
// proof: values: where the first segment has all elements, most of them are left out
// data: rand e[N] : bool ~ bernoulli(0); in seg[N] : i32 = minimum(S - 1, sum(k <= i | e[k]) 1)
// should: wrong inaccurate
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
    int from = first_of(seg, n, s), to = s == segments - 1 ? n : min(first_of(seg, n, s + 1), from + 2048);
    float sum = 0;
    for (int i = from + lane; i < to; i += 32)
        sum += x[i];
    for (int k = 16; k; k /= 2)
        sum += __shfl_xor_sync(~0u, sum, k);
    if (lane == 0)
        y[s] = sum;
}
