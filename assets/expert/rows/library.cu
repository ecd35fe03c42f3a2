//% library
//% if cp_merge_moments
// Count, mean and sum of squared differences from it, of two sets together (Chan's update).
static __device__ __forceinline__ void cp_merge_moments(float &n, float &mean, float &squares,
                                                        float n2, float mean2, float squares2) {
    const float all = n + n2, d = mean2 - mean, share = __fdividef(n2, fmaxf(all, 1.0f));
    mean += d * share;
    squares += squares2 + d * (n * share) * d; // d * d alone may be too large
    n = all;
}
//% end
//% if cp_take_max
// The larger value and its place; of equal ones the first. NaN is the largest.
template <class T, class I>
static __device__ __forceinline__ void cp_take_max(T &best, I &place, T value, I at) {
    const bool tie = value == best || (value != value && best != best);
    const bool more = value > best || (value != value && best == best);
    if (more || (tie && at < place)) {
        best = value;
        place = at;
    }
}
//% end
//% if cp_take_min
// The same with the smaller one.
template <class T, class I>
static __device__ __forceinline__ void cp_take_min(T &best, I &place, T value, I at) {
    const bool tie = value == best || (value != value && best != best);
    const bool less = value < best || (value != value && best == best);
    if (less || (tie && at < place)) {
        best = value;
        place = at;
    }
}
//% end
//% if cp_next_max
// The same for places that only grow: of equal values the one that is there stays.
template <class T, class I>
static __device__ __forceinline__ void cp_next_max(T &best, I &place, T value, I at) {
    if ((!(value <= best) && best == best) || (value == best && at < place)) {
        best = value;
        place = at;
    }
}
//% end
//% if cp_next_min
template <class T, class I>
static __device__ __forceinline__ void cp_next_min(T &best, I &place, T value, I at) {
    if ((!(value >= best) && best == best) || (value == best && at < place)) {
        best = value;
        place = at;
    }
}
//% end
//% if cp_load_edge
// Columns [col, col + N) of a row of `cols`; those outside of it are 0.
template <int N, class T, class I>
static __device__ __forceinline__ cp_pack<T, N> cp_load_edge(const T *row, I col, I cols) {
    if (col >= 0 && col + N <= cols)
        return cp_load<N>(row + col);
    cp_pack<T, N> to = {};
#pragma unroll
    for (int v = 0; v < N; v++)
        if (col + v >= 0 && col + v < cols)
            to.at[v] = row[col + v];
    return to;
}
//% end
//% if cp_store_edge
template <int N, class T, class I>
static __device__ __forceinline__ void cp_store_edge(T *row, I col, I cols,
                                                     const cp_pack<T, N> &from) {
    if (col >= 0 && col + N <= cols) {
        cp_store(row + col, from);
        return;
    }
#pragma unroll
    for (int v = 0; v < N; v++)
        if (col + v >= 0 && col + v < cols)
            row[col + v] = from.at[v];
}
//% end
//% if cp_divide
// What divides many numbers, as factors: the quotient is within 2 ulp for every divisor, as it is
// scaled where it or its reciprocal would be subnormal.
struct cp_divisor {
    float scale, inverse;
};
static __device__ __forceinline__ cp_divisor cp_divisor_of(float b) {
    const float size = fabsf(b);
    const float scale = size < 0x1p-126f ? 0x1p32f : size > 0x1p126f ? 0x1p-2f : 1.0f;
    return {scale, __frcp_rn(b * scale)};
}
static __device__ __forceinline__ float cp_divide(float a, const cp_divisor &by) {
    return a * by.scale * by.inverse;
}
//% end
//% if cp_bring
// Has n elements brought to L2, as far as they fill 16 bytes.
template <class T> static __device__ __forceinline__ void cp_bring(const T *p, int n) {
    const unsigned long long at = (unsigned long long)__cvta_generic_to_global(p);
    const unsigned bytes = ((unsigned)(at & 15) + n * (unsigned)sizeof(T)) & ~15u;
    if (bytes)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
                     :
                     : "l"(at & ~15ull), "r"(bytes)
                     : "memory");
}
//% end
//% if cp_kept
// N neighbours in shared memory.
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> &cp_kept(T *p) {
    return *reinterpret_cast<cp_pack<T, N> *>(p);
}
//% end
//% if cp_merge_lanes
// One part of those of kTeam neighbouring lanes; all of them get it.
template <int kTeam, class P> static __device__ __forceinline__ P cp_merge_lanes(P part) {
#pragma unroll
    for (int d = kTeam / 2; d > 0; d /= 2)
        part.merge(part.across(d));
    return part;
}
//% end
//% if cp_merge_block
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
//% end
//% if cp_merge_tree
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
//% end
//% if cp_merge_cluster
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
//% end
//% if cp_merge_columns
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
//% end
//% if cp_beside
// What a pointer to a pack's first element points to, as a tensor like the pack.
template <class P, class T> static __device__ __forceinline__ auto cp_beside(const T *p, const P &pack) {
    return cute::make_tensor(cute::make_gmem_ptr((const typename P::value_type *)p), pack.layout());
}
template <class P, class T> static __device__ __forceinline__ auto cp_beside(T *p, const P &pack) {
    return cute::make_tensor(cute::make_gmem_ptr((typename P::value_type *)p), pack.layout());
}
//% end
//% if cp_vectors_of
template <class P> static __device__ __forceinline__ auto cp_vectors_of(const P &) {
    return cp_vectors<typename P::value_type, int(cute::size(typename P::layout_type{}))>{};
}
//% end
//% if cp_get
template <class T, class P> static __device__ __forceinline__ void cp_get(const T *p, P &&pack) {
    cute::copy(cp_vectors_of(pack), cp_beside(p, pack), pack);
}
//% end
//% if cp_put
template <class T, class P> static __device__ __forceinline__ void cp_put(T *p, const P &pack) {
    cute::copy(cp_vectors_of(pack), pack, cp_beside(p, pack));
}
//% end
//% if cp_get_edge
// Columns [col, col + N) of a row of `cols`; those outside of it are 0, or not stored.
template <class T, class I, class P>
static __device__ __forceinline__ void cp_get_edge(const T *row, I col, I cols, P &&pack) {
    constexpr int N = decltype(cute::size(pack))::value;
    if (col >= 0 && col + N <= cols) {
        cp_get(row + col, pack);
        return;
    }
    cute::clear(pack);
    cute::copy_if([&](int v) { return col + v >= 0 && col + v < cols; }, cp_beside(row + col, pack),
                  pack);
}
//% end
//% if cp_put_edge
template <class T, class I, class P>
static __device__ __forceinline__ void cp_put_edge(T *row, I col, I cols, const P &pack) {
    constexpr int N = decltype(cute::size(pack))::value;
    if (col >= 0 && col + N <= cols) {
        cp_put(row + col, pack);
        return;
    }
    auto to = cp_beside(row + col, pack);
    cute::copy_if([&](int v) { return col + v >= 0 && col + v < cols; }, pack, to);
}
//% end
//% if cp_kept_pack
// A pack that shared memory keeps.
template <class T, class P> static __device__ __forceinline__ auto cp_kept_pack(T *p, const P &pack) {
    return cute::make_tensor(cute::make_smem_ptr((typename P::value_type *)p), pack.layout());
}
//% end
