//% library
// Copies ${bytes} bytes to shared memory in the background; zeros where the source does not exist.
static __device__ __forceinline__ void gemm_copy${bytes}(void *to, const void *from, bool exists) {
    //% if cute
    cute::SM80_CP_ASYNC_${cute_cache}_ZFILL<${type}>::copy(*(const ${type} *)from, *(${type} *)to, exists);
    //% else
    asm volatile("cp.async.${cache}.shared.global [%0], [%1], ${bytes}, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(exists ? ${bytes} : 0)
                 : "memory");
    //% end
}
