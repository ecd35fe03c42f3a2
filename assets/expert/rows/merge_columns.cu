// One part of those of the kTeam threads with the same lane; all of them get it.
template <int kTeam, int kLanes, class P>
static __device__ __forceinline__ P cp_merge_columns(P part, int lane, int rank) {
    __shared__ P parts[kTeam][kLanes];
    __syncthreads(); // an earlier result has been read by all
    parts[rank][lane] = part;
    __syncthreads();
    part = parts[0][lane];
    for (int o = 1; o < kTeam; o++)
        part.merge(parts[o][lane]);
    return part;
}

