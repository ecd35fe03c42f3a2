// task: third_shiftin.task
// tries: honest: one block, from the end to the beginning
// should: accepted
// device: both
//! launch k<<<1, 256>>>(c, N)
extern "C" __global__ void k(float *c, int n) {
    for (int from = (n - 1) / 256 * 256; from >= 0; from -= 256) {
        int i = from + threadIdx.x;
        float v = i > 0 && i < n ? c[i - 1] : 0;
        __syncthreads();
        if (i < n)
            c[i] = v;
        __syncthreads();
    }
}
