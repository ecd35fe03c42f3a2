//% library
static __device__ __forceinline__ void gemm_commit() {
    //% if cute
    cute::cp_async_fence();
    //% else
    asm volatile("cp.async.commit_group;" ::: "memory");
    //% end
}
// Waits until at most N of the groups committed last are still on their way.
template <int N> static __device__ __forceinline__ void gemm_wait() {
    //% if cute
    cute::cp_async_wait<N>();
    //% else
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
    //% end
}

// Tiles of k come through a ring of buffers, STAGES - 1 of them ahead of the one in use.
// load(stage, k) starts the copies of a tile; keep(stage) stores what they hold in registers.
template <class G, class Load, class Keep, class Use, class Promote>
static __device__ __forceinline__ void gemm_loop(int k_begin, int k_end, Load load, Keep keep,
                                                 Use use, Promote promote) {
    const int tiles = (k_end - k_begin + G::BK - 1) / G::BK;
#pragma unroll
    for (int s = 0; s < G::STAGES - 1; s++) {
        if (s < tiles) {
            load(s, k_begin + s * G::BK);
            keep(s);
        }
        gemm_commit();
    }
    for (int t = 0; t < tiles; t++) {
        gemm_wait<G::STAGES - 2>();
        __syncthreads();
        const int next = t + G::STAGES - 1, stage = next % G::STAGES;
        if (next < tiles)
            load(stage, k_begin + next * G::BK);
        gemm_commit();
        use(t % G::STAGES);
        if (G::PROMOTE && (t + 1) % max(G::PROMOTE, 1) == 0)
            promote();
        if (next < tiles)
            keep(stage);
    }
    gemm_wait<0>();
}
