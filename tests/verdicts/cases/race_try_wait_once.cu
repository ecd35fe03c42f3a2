// expect: race uninitialised wrong inaccurate nonfinite
// expect-cuda: skip a race that a GPU may not show
// row: 11
// why: of events
// tries: waits with a try_wait whose answer nobody looks at; it mostly waits long enough
//! require R*C % 128 == 0
//! launch relu<<<R*C/128, 128>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ __align__(128) float tile[128];
    __shared__ unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    unsigned t = (unsigned)__cvta_generic_to_shared(tile);
    int i = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n" ::"r"(b)
                     : "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;\n"
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], "
                     "512, [%0];\n" ::"r"(b),
                     "r"(t), "l"(x + blockIdx.x * 128)
                     : "memory");
    int done;
    do
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     "selp.s32 %0, 1, 0, p;\n}\n"
                     : "=r"(done)
                     : "r"(b)
                     : "memory");
    while (false);
    float v = tile[threadIdx.x];
    if (i < n)
        y[i] = v < 0.0f ? 0.0f : v;
}
