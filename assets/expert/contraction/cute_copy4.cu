//% library
// Copies 4 bytes to shared memory in the background; zeros where the source does not exist.
static __device__ __forceinline__ void gemm_copy4(void *to, const void *from, bool exists) {
    cute::SM80_CP_ASYNC_CACHEALWAYS_ZFILL<unsigned>::copy(*(const unsigned *)from, *(unsigned *)to,
                                                          exists);
}
