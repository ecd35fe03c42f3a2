// task: ../../tasks/smoke/mul_add.task
// tries: results go out by bulk copies from shared memory, which is filled again for the next tile before they were read
// proof: by PTX: only cp.async.bulk.wait_group.read says that the source may be written again
// shows: R=16 C=2048
// should: race wrong nonfinite inaccurate
// device: both
//! require C % 4 == 0
//! launch compute<<<R, 128>>>(a, b, y, C)
extern "C" __global__ void compute(const float *a, const float *b, float *y, int c) {
    __shared__ alignas(128) float tile[512];
    int64_t row = (int64_t)blockIdx.x * c;
    unsigned from = (unsigned)__cvta_generic_to_shared(tile);
    for (int t = 0; t < c; t += 512) {
        int n = min(512, c - t);
        for (int j = threadIdx.x; j < n; j += 128)
            tile[j] = fmaf(a[row + t + j], b[row + t + j], a[row + t + j]);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + row + t), "r"(from), "r"(4 * n) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
