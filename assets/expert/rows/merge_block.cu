// One part of those of all kTeam threads of the block; all of them get it.
template <int kTeam, class P> static __device__ __forceinline__ P cp_merge_block(P part) {
    __shared__ P warps[kTeam / 32];
    part = cp_merge_lanes<32>(part);
    __syncthreads(); // an earlier result has been read by all
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = part;
    __syncthreads();
    part = warps[threadIdx.x % (kTeam / 32)];
    return cp_merge_lanes<kTeam / 32>(part);
}

