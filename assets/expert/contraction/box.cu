//% library
// Starts the copy of a box of a tensor by the copy engine, whose rows begin at `inner`; its bytes
// arrive at the barrier.
//% if cute
static __device__ __forceinline__ void gemm_copy_box(void *to, const CUtensorMap *map, int inner,
                                                     int row, int slab, cute::uint64_t *barrier) {
    cute::SM90_TMA_LOAD_3D::copy(map, barrier,
                                 (cute::uint64_t)cute::TMA::CacheHintSm90::EVICT_NORMAL, to, inner, row,
                                 slab);
}
//% else
static __device__ __forceinline__ void gemm_copy_box(unsigned to, const CUtensorMap *map, int inner,
                                                     int row, int slab, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                 "l"(map), "r"(inner), "r"(row), "r"(slab), "r"(barrier)
                 : "memory");
}
//% end
