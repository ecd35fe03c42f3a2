//% library
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
        cute::cp_async_fence();
    }
    for (int t = 0; t < tiles; t++) {
        cute::cp_async_wait<G::STAGES - 2>();
        __syncthreads();
        const int next = t + G::STAGES - 1, stage = next % G::STAGES;
        if (next < tiles)
            load(stage, k_begin + next * G::BK);
        cute::cp_async_fence();
        use(t % G::STAGES);
        if (G::PROMOTE && (t + 1) % max(G::PROMOTE, 1) == 0)
            promote();
        if (next < tiles)
            keep(stage);
    }
    cute::cp_async_wait<0>();
    __syncthreads(); // the ring is free for the results
}
