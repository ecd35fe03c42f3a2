//% library
// Copies 16 bytes to shared memory in the background; zeros where the source does not exist.
static __device__ __forceinline__ void gemm_copy16(void *to, const void *from, bool exists) {
    cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<cute::uint128_t>::copy(
        *(const cute::uint128_t *)from, *(cute::uint128_t *)to, exists);
}
