// task: ../../tasks/smoke/mul_add.task
// tries: honest: results go out by bulk copies from two tiles in turn, each filled again once it was read
// proof: none; it is right
// should: accepted
// device: both
//! require C % 4 == 0
//! launch compute<<<R, 128>>>(a, b, y, C)
extern "C" __global__ void compute(const float *a, const float *b, float *y, int c) {
    __shared__ alignas(128) float tile[2][256];
    int64_t row = (int64_t)blockIdx.x * c;
    for (int t = 0, k = 0; t < c; t += 256, k ^= 1) {
        int n = min(256, c - t);
        unsigned from = (unsigned)__cvta_generic_to_shared(tile[k]);
        if (threadIdx.x == 0)
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        for (int j = threadIdx.x; j < n; j += 128)
            tile[k][j] = fmaf(a[row + t + j], b[row + t + j], a[row + t + j]);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + row + t), "r"(from), "r"(4 * n) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
