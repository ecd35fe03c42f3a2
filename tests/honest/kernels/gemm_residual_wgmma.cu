// task: tasks/layers/gemm_residual.task
// set: M=128 N=128 K=512
// what: 64x64 tiles by TMA into swizzled shared memory, two stages on mbarriers, wgmma
#include <cuda_bf16.h>
//! require K % 8 == 0
//! tensormap tx = tiled(x, box=[64, 64], swizzle=128)
//! tensormap tw = tiled(w, box=[64, 64], swizzle=128)
//! launch gemm<<<[ceil_div(N, 64), ceil_div(M, 64)], 128, 33792>>>(tx, tw, r, y, M, N, K)
static __device__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ void fetch(const CUtensorMap *map, unsigned to, unsigned barrier, int k,
                             int row) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(k), "r"(row)
                 : "memory");
}

static __device__ void await(unsigned barrier, unsigned phase) {
    asm volatile("{\n.reg .pred p;\n"
                 "again:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again;\n}" ::"r"(barrier),
                 "r"(phase)
                 : "memory");
}

// K-major, 128-byte swizzle, 8 rows every 1,024 bytes.
static __device__ unsigned long long descriptor(unsigned address) {
    return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

static __device__ void multiply(float (&c)[32], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
        "%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
          "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
          "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]),
          "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]),
          "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
        : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(128)
    gemm(const __grid_constant__ CUtensorMap tx, const __grid_constant__ CUtensorMap tw,
         const __nv_bfloat16 *r, __nv_bfloat16 *y, int m, int n, int inner) {
    extern __shared__ char raw[];
    __shared__ unsigned long long full[2];
    unsigned tiles = (shared_address(raw) + 1023) & ~1023u; // a stage: 8 KiB of x, 8 KiB of w
    int row = blockIdx.y * 64, col = blockIdx.x * 64, steps = (inner + 63) / 64;
    float c[32] = {};
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + s)));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    for (int s = -1; s < steps; s++) {
        int next = s + 1, stage = next % 2;
        if (threadIdx.x == 0 && next < steps) {
            unsigned barrier = shared_address(full + stage), to = tiles + stage * 16384;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16384;" ::"r"(barrier)
                         : "memory");
            fetch(&tx, to, barrier, 64 * next, row);
            fetch(&tw, to + 8192, barrier, 64 * next, col);
        }
        if (s < 0)
            continue;
        await(shared_address(full + s % 2), s / 2 % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        unsigned at = tiles + s % 2 * 16384;
        for (int k = 0; k < 4; k++)
            multiply(c, descriptor(at + 32 * k), descriptor(at + 8192 + 32 * k));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    int lane = threadIdx.x % 32, i0 = row + threadIdx.x / 32 * 16 + lane / 4;
    for (int e = 0; e < 32; e++) {
        int i = i0 + e / 2 % 2 * 8, j = col + e / 4 * 8 + lane % 4 * 2 + e % 2;
        if (i < m && j < n) {
            long long at = (long long)i * n + j;
            y[at] = __float2bfloat16_rn(c[e] + __bfloat162float(r[at]));
        }
    }
}
