// task: third_shiftin.task
// tries: in place by blocks of 256; the element before the block may have been overwritten
// proof: block b reads what block b - 1 writes
// should: race wrong
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(c, N)
extern "C" __global__ void k(float *c, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = i > 0 && i < n ? c[i - 1] : 0;
    __syncthreads();
    if (i < n)
        c[i] = v;
}
