// Kernels of gpu_sharing.c: one for each thing that is tried.
typedef unsigned u32;
typedef unsigned long long u64;

extern "C" __global__ void peek(const u32 *p, u64 index, u32 *out) {
    *out = p[index];
}

extern "C" __global__ void poke(u32 *p, u64 index, u32 value) {
    p[index] = value;
}

extern "C" __global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2 * x[i];
}

// Through a workspace, in clusters, with dynamic shared memory.
extern "C" __global__ void stage_one(const float *x, float *part, int n) {
    extern __shared__ float shared[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = i < n ? 3 * x[i] : 0;
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (i < n)
        part[i] = shared[threadIdx.x];
}

// Adds to what a memset left.
extern "C" __global__ void stage_two(const float *part, double *sums, float *y, u64 n) {
    for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = part[i] + (float)sums[i % 16];
}

struct __align__(64) map {
    char bytes[128];
};

// One box of 32 by 8 floats a block, by the copy engine.
extern "C" __global__ void boxes(const __grid_constant__ map m, float *y) {
    __shared__ __align__(128) float box[8 * 32];
    __shared__ u64 barrier;
    u32 at = (u32)__cvta_generic_to_shared(box), bar = (u32)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(bar));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(bar));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(at),
                     "l"(&m), "r"(0), "r"((int)blockIdx.x * 8), "r"(bar)
                     : "memory");
    }
    __syncthreads();
    u32 done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar) : "memory");
    y[blockIdx.x * 256 + threadIdx.x] = box[threadIdx.x] + 1;
}

extern "C" __global__ void stuck(u32 *p) {
    while (((volatile u32 *)p)[0] != 12345)
        ;
}
