//% library
// Barriers in shared memory.
static __device__ __forceinline__ void gemm_barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}
static __device__ __forceinline__ void gemm_barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
static __device__ __forceinline__ void gemm_barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}
static __device__ __forceinline__ void gemm_barrier_wait(unsigned barrier, int parity) {
    asm volatile("{\n.reg .pred done;\nwait:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra wait;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// A tile of rows of 128 bytes, swizzled by the copy, as wgmma's descriptor says it: groups of 8
// rows lie 1024 bytes apart. Where rows do not run along k, boxes of 64 of them lie 8192 bytes
// apart; where they do, that number is not used.
static __device__ __forceinline__ unsigned long long gemm_tile(unsigned address) {
    return (address & 0x3ffff) >> 4 | 512ull << 16 | 64ull << 32 | 1ull << 62;
}
// Orders writes to registers and shared memory before the wgmma that follow.
static __device__ __forceinline__ void gemm_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void gemm_group_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> static __device__ __forceinline__ void gemm_group_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
