// task: fresh_absmax.task
// tries: honest: one warp copies tiles in bulk into a ring of three, the others wait for full ones and hand them back by mbarriers
// proof: none; it is right
// should: accepted
// device: both
//! require D % 4 == 0
//! launch largest<<<R, 128>>>(x, y, D)
__device__ void wait_for(unsigned bar, unsigned parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(bar), "r"(parity) : "memory");
}
extern "C" __global__ void largest(const float *x, float *y, int d) {
    __shared__ alignas(128) float tile[3][512];
    __shared__ alignas(8) uint64_t full[3], empty[3];
    __shared__ unsigned top;
    const float *row = x + (int64_t)blockIdx.x * d;
    if (threadIdx.x == 0) {
        top = 0;
        for (int k = 0; k < 3; k++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(&full[k])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 96;" ::"r"((unsigned)__cvta_generic_to_shared(&empty[k])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int t = 0; threadIdx.x == 0 && t * 512 < d; t++) {
            int k = t % 3, n = min(512, d - t * 512);
            unsigned bar = (unsigned)__cvta_generic_to_shared(&full[k]);
            if (t >= 3)
                wait_for((unsigned)__cvta_generic_to_shared(&empty[k]), (t / 3 - 1) & 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(4 * n) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             (unsigned)__cvta_generic_to_shared(tile[k])),
                         "l"(row + t * 512), "r"(4 * n), "r"(bar) : "memory");
        }
    } else {
        unsigned m = 0;
        for (int t = 0; t * 512 < d; t++) {
            int k = t % 3, n = min(512, d - t * 512);
            wait_for((unsigned)__cvta_generic_to_shared(&full[k]), t / 3 & 1);
            for (int j = threadIdx.x - 32; j < n; j += 96)
                m = max(m, __float_as_uint(tile[k][j]) & 0x7fffffffu);
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((unsigned)__cvta_generic_to_shared(&empty[k])) : "memory");
        }
        atomicMax(&top, m);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = __uint_as_float(top);
}
