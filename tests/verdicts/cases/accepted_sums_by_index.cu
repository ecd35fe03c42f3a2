// expect: accepted
// row: -
// tries: the honest kernel of the two that leave a result out, or have a term twice
// task: tasks/sums_by_index.task
//! workspace sums[K] : f64
//! memset sums = 0
//! launch add<<<ceil_div(T, 256), 256>>>(e, x, sums, T, K)
//! launch finish<<<ceil_div(K, 256), 256>>>(sums, y, K)
extern "C" __global__ void add(const int *e, const float *x, double *sums, int T, int K) {
    int t = blockIdx.x * 256 + threadIdx.x;
    if (t < T && e[t] >= 0 && e[t] < K)
        atomicAdd(&sums[e[t]], (double)(x[t]));
}
extern "C" __global__ void finish(const double *sums, float *y, int K) {
    int k = blockIdx.x * 256 + threadIdx.x;
    if (k < K)
        y[k] = (float)sums[k];
}
