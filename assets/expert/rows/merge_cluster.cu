static __device__ __forceinline__ void cp_cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// What lies at the same place of block `rank` of the cluster.
template <class P> static __device__ __forceinline__ P cp_cluster_read(const P *mine, int rank) {
    unsigned words[sizeof(P) / 4], at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(at)
        : "r"((unsigned)__cvta_generic_to_shared(mine)), "r"(rank));
#pragma unroll
    for (int w = 0; w < int(sizeof(P) / 4); w++)
        asm volatile("ld.shared::cluster.u32 %0, [%1];"
                     : "=r"(words[w])
                     : "r"(at + 4 * w)
                     : "memory");
    P other;
    memcpy(&other, words, sizeof other);
    return other;
}
// One part of those of all blocks of the cluster; all threads get it. A lane reads each block's.
template <int kCluster, class P> static __device__ __forceinline__ P cp_merge_cluster(P part) {
    __shared__ P mine, all;
    if (threadIdx.x == 0)
        mine = part;
    cp_cluster_sync();
    if (threadIdx.x < 32) {
        P other = cp_cluster_read(&mine, threadIdx.x % kCluster);
        other = cp_merge_lanes<kCluster>(other);
        if (threadIdx.x == 0)
            all = other;
    }
    cp_cluster_sync(); // what others have read stays until here; `all` is there
    return all;
}

