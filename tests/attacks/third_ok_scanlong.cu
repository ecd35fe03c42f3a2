// task: third_scanlong.task
// tries: honest: both directions by one block of warps with sums of warps in shared memory
// should: accepted
// device: both
//! launch k<<<[R, 2], 256>>>(x, y, z, C)
extern "C" __global__ void k(const float *x, float *y, float *z, int c) {
    __shared__ float w[8];
    int64_t at = (int64_t)blockIdx.x * c;
    bool back = blockIdx.y;
    float carry = 0;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int from = 0; from < c; from += 256) {
        int k = from + threadIdx.x, j = back ? c - 1 - k : k;
        float own = k < c ? x[at + j] : 0, v = own;
        for (int d = 1; d < 32; d *= 2) {
            float u = __shfl_up_sync(~0u, v, d);
            v += lane >= d ? u : 0;
        }
        if (lane == 31)
            w[warp] = v;
        float before = __shfl_up_sync(~0u, v, 1);
        __syncthreads();
        float sum = carry;
        for (int i = 0; i < 8; i++) {
            carry += w[i];
            sum = i < warp ? carry : sum;
        }
        __syncthreads();
        if (k < c)
            (back ? z : y)[at + j] = back ? lane ? sum + before : sum : sum + v;
    }
}
