// task: fresh_segsum.task
// tries: only threads at which a segment begins write: segments that have no element keep what the output held
// proof: memory: empty segments are never written
// data: rand e[N] : bool ~ bernoulli(0); in seg[N] : i32 = minimum(S - 1, sum(k <= i | e[k]) 1)
// should: unwritten wrong inaccurate nonfinite
// device: both
//! launch sums<<<ceil_div(N, 128), 128>>>(seg, x, y, N)
extern "C" __global__ void sums(const int *seg, const float *x, float *y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n || (i && seg[i - 1] == seg[i]))
        return;
    float sum = 0;
    for (int k = i; k < n && seg[k] == seg[i]; k++)
        sum += x[k];
    y[seg[i]] = sum;
}
