//% library
// BYTES from global to shared memory, without a register in between; 16 go past L1.
template <int BYTES>
static __device__ __forceinline__ void cp_copy_async(void *to, const void *from) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES)
                     : "memory");
}

