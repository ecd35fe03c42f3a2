// expect: race wrong inaccurate nonfinite no-progress
// expect-cuda: skip a race that a GPU may not show
// row: 11
// why: of events
// tries: a ring for two consumers, refilled after a wait that can be passed one phase early
// set: R=64 C=128
//! require R*C % 128 == 0
//! launch relu<<<1, 64>>>(x, y, R*C)
static __device__ unsigned at(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ void wait(unsigned long long *bar, int parity) {
    int done;
    do
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.s32 %0, 1, 0, p;\n}\n"
                     : "=r"(done)
                     : "r"(at(bar)), "r"(parity)
                     : "memory");
    while (!done);
}

static __device__ void fetch(unsigned long long *bar, float *to, const float *from) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], 512, "
                 "[%0];\n" ::"r"(at(bar)),
                 "r"(at(to)), "l"(from)
                 : "memory");
}

// Two warps take a half of each tile from a ring of two; the second one fetches the next tile to
// where both have taken the last one from.
extern "C" __global__ void relu(const float *x, float *y, int n) {
    __shared__ __align__(128) float ring[2][128];
    __shared__ unsigned long long full[2];
    __shared__ volatile int taken; // tiles, by the first warp
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, tiles = n / 128;
    if (threadIdx.x == 32) {
        for (int s = 0; s < 2; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(at(&full[s])));
        taken = 0;
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 32)
        for (int i = 0; i < 2 && i < tiles; i++)
            fetch(&full[i], ring[i], x + i * 128);
    for (int i = 0; i < tiles; i++) {
        int s = i % 2, round = i / 2;
        wait(&full[s], round & 1);
        for (int k = 0; k < 2; k++) {
            int j = warp * 64 + k * 32 + lane;
            float v = ring[s][j];
            y[i * 128 + j] = v < 0.0f ? 0.0f : v;
        }
        __syncwarp();
        if (lane == 0 && warp == 0) {
            __threadfence_block();
            taken = i + 1;
        }
        if (lane == 0 && warp == 1 && i + 2 < tiles) {
            while (taken < i)
                ;
            __threadfence_block();
            fetch(&full[s], ring[s], x + (i + 2) * 128);
        }
    }
}
