static __device__ __forceinline__ ${type} ${combine}(${type} a, ${type} b) {
    return ${combined};
}

