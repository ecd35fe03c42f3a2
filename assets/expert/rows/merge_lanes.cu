// One part of those of kTeam neighbouring lanes; all of them get it.
template <int kTeam, class P> static __device__ __forceinline__ P cp_merge_lanes(P part) {
#pragma unroll
    for (int d = kTeam / 2; d > 0; d /= 2)
        part.merge(part.across(d));
    return part;
}

