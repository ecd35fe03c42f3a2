// task: fresh_hist.task
// tries: counts are added to an output that nothing set to zero
// proof: memory: the output is undefined before the plan starts
// shows: N=64 V=4
// should: uninitialised wrong unwritten inaccurate
// device: both
//! launch count<<<ceil_div(N, 256), 256>>>(t, h, N)
extern "C" __global__ void count(const int *t, int *h, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        atomicAdd(&h[t[i]], 1);
}
