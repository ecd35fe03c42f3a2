// That of the lane whose number differs by the bits of d.
__device__ __forceinline__ ${part} across(int d) const {
    ${part} p;
    ${fields}
    return p;
}
