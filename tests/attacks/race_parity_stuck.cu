// task: tasks/row_sum.task
// tries: bulk copies behind an mbarrier whose parity is no longer turned from the fifth tile on
// proof: by PTX: waiting for the parity of the phase before comes back at once, while the copy is under way
// shows: R=4 C=8192
// before: crash
// should: race wrong nonfinite inaccurate no-progress crash
// before-cuda: wrong
// device: both
//! require C % 4 == 0
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    __shared__ alignas(128) float tile[1024];
    __shared__ alignas(8) uint64_t arrived;
    const float *row = x + (int64_t)blockIdx.x * c;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&arrived);
    float s = 0;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();
    for (int t = 0; t * 1024 < c; t++) {
        int n = min(1024, c - t * 1024), parity = t < 4 ? t % 2 : 0;
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                         "r"(4 * n) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];" ::"r"(to), "l"(row + t * 1024), "r"(4 * n),
                         "r"(bar) : "memory");
        }
        __syncwarp();
        asm volatile("{\n.reg .pred done;\nwait:\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                     "@!done bra wait;\n}" ::"r"(bar), "r"(parity) : "memory");
        for (int j = threadIdx.x; j < n; j += 32)
            s += tile[j];
        __syncwarp();
    }
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}
