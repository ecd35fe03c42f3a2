// ${definition}, for one element.
static __device__ __forceinline__ ${type} ${function}(${parameters}) {
    ${locals}
    return ${value};
}
