// One part of those of all kTeam threads of the block, by halving in shared memory; all get it.
template <int kTeam, class P> static __device__ __forceinline__ P cp_merge_tree(P part) {
    __shared__ P parts[kTeam];
    __syncthreads(); // an earlier result has been read by all
    parts[threadIdx.x] = part;
#pragma unroll
    for (int d = kTeam / 2; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d)
            parts[threadIdx.x].merge(parts[threadIdx.x + d]);
    }
    __syncthreads();
    return parts[0];
}

