// expect: no-progress
// expect-cuda: timeout no-progress
// alone: yes
// row: 22
// set: R=16 C=1024
// why-sim: bytes of copies
// tries: an mbarrier that is told to expect more bytes than come
//! require C % 256 == 0
//! launch relu<<<R*C/256, 256>>>(x, y)
static __device__ float relu_of(float v) {
    return v < 0.0f ? 0.0f : v;
}

extern "C" __global__ void relu(const float *x, float *y) {
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    int i = blockIdx.x * 256;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;\n"
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%1], [%2], 1024, [%0];" ::"r"(at),
                     "r"((unsigned)__cvta_generic_to_shared(s)), "l"(x + i)
                     : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
                 "@p bra D;\nbra W;\nD: }" ::"r"(at)
                 : "memory");
    y[i + threadIdx.x] = relu_of(s[threadIdx.x]);
}
