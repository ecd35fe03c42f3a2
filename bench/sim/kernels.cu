// What the simulator's speed is measured on: C[M,N] = A[M,K] B[K,N].
// nvcc -ptx -lineinfo -arch=sm_90a kernels.cu
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// fp32, tiles of 64 by 64 by 8, 8 by 4 a thread, 128 threads.
extern "C" __global__ void __launch_bounds__(128) sgemm(const float *a, const float *b, float *c,
                                                        int m, int n, int k) {
    __shared__ __align__(16) float sa[8][64], sb[8][64];
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    int tr = t / 16 * 8, tc = t % 16 * 4;
    float acc[8][4] = {};
    for (int k0 = 0; k0 < k; k0 += 8) {
        float4 va = *(const float4 *)&a[(row + t / 2) * k + k0 + t % 2 * 4];
        float4 vb = *(const float4 *)&b[(k0 + t / 16) * n + col + t % 16 * 4];
        __syncthreads();
        sa[t % 2 * 4 + 0][t / 2] = va.x;
        sa[t % 2 * 4 + 1][t / 2] = va.y;
        sa[t % 2 * 4 + 2][t / 2] = va.z;
        sa[t % 2 * 4 + 3][t / 2] = va.w;
        *(float4 *)&sb[t / 16][t % 16 * 4] = vb;
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 8; kk++) {
            float ra[8], rb[4];
#pragma unroll
            for (int i = 0; i < 8; i += 4)
                *(float4 *)&ra[i] = *(const float4 *)&sa[kk][tr + i];
            *(float4 *)&rb[0] = *(const float4 *)&sb[kk][tc];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    acc[i][j] += ra[i] * rb[j];
        }
    }
    for (int i = 0; i < 8; i++)
        *(float4 *)&c[(row + tr + i) * n + col + tc] =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

// f16 with fp32 sums: mma.sync, ldmatrix, cp.async in two stages; 64 by 64 by 32, four warps.
extern "C" __global__ void __launch_bounds__(128) hgemm(const __half *a, const __half *b, float *c,
                                                        int m, int n, int k) {
    __shared__ __align__(16) __half sa[2][64][40], sb[2][32][72];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int row = blockIdx.y * 64, col = blockIdx.x * 64, wr = warp / 2 * 32, wc = warp % 2 * 32;
    float acc[2][4][4] = {};
    auto load = [&](int s, int k0) {
        for (int i = t; i < 256; i += 128)
            __pipeline_memcpy_async(&sa[s][i / 4][i % 4 * 8], &a[(row + i / 4) * k + k0 + i % 4 * 8],
                                    16);
        for (int i = t; i < 256; i += 128)
            __pipeline_memcpy_async(&sb[s][i / 8][i % 8 * 8], &b[(k0 + i / 8) * n + col + i % 8 * 8],
                                    16);
        __pipeline_commit();
    };
    load(0, 0);
    for (int k0 = 0, s = 0; k0 < k; k0 += 32, s ^= 1) {
        if (k0 + 32 < k)
            load(s ^ 1, k0 + 32);
        else
            __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 32; kk += 16) {
            unsigned ra[2][4], rb[4][2];
#pragma unroll
            for (int i = 0; i < 2; i++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(ra[i][0]), "=r"(ra[i][1]), "=r"(ra[i][2]), "=r"(ra[i][3])
                             : "r"(at(&sa[s][wr + i * 16 + lane % 16][kk + lane / 16 * 8])));
#pragma unroll
            for (int j = 0; j < 4; j++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                             : "=r"(rb[j][0]), "=r"(rb[j][1])
                             : "r"(at(&sb[s][kk + lane % 16][wc + j * 8])));
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, "
                                 "%3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]),
                                   "+f"(acc[i][j][3])
                                 : "r"(ra[i][0]), "r"(ra[i][1]), "r"(ra[i][2]), "r"(ra[i][3]),
                                   "r"(rb[j][0]), "r"(rb[j][1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int h = 0; h < 2; h++)
                *(float2 *)&c[(row + wr + i * 16 + lane / 4 + h * 8) * n + col + wc + j * 8 +
                              lane % 4 * 2] = make_float2(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
}

__device__ void wait(unsigned bar, int parity) {
    asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra D;\nbra W;\nD: }" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}
__device__ void tile(unsigned to, const CUtensorMap *map, int x, int y, unsigned bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(bar)
                 : "memory");
}

// f16 with fp32 sums: a producer warp, TMA with 128-byte swizzle, one warpgroup of wgmma 64x128x16;
// A is [M,K], B is [N,K].
extern "C" __global__ void __launch_bounds__(160)
    tgemm(const __grid_constant__ CUtensorMap ma, const __grid_constant__ CUtensorMap mb, float *c,
          int m, int n, int k) {
    __shared__ __align__(1024) __half sa[2][64 * 64], sb[2][128 * 64];
    __shared__ unsigned long long full[2], empty[2];
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 128;
    if (t == 0) {
        for (int s = 0; s < 2; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full[s])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(at(&empty[s])));
        }
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (t >= 128) {
        if (t == 128)
            for (int i = 0; i < k / 64; i++) {
                int s = i % 2;
                wait(at(&empty[s]), (i / 2 + 1) & 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                                 at(&full[s])),
                             "r"(64 * 64 * 2 + 128 * 64 * 2)
                             : "memory");
                tile(at(sa[s]), &ma, i * 64, row, at(&full[s]));
                tile(at(sb[s]), &mb, i * 64, col, at(&full[s]));
            }
        return;
    }
    float d[64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        d[i] = 0;
    const unsigned long long fixed = 1ull << 62 | 1024ull >> 4 << 32 | 1ull << 16;
    for (int i = 0; i < k / 64; i++) {
        int s = i % 2;
        wait(at(&full[s]), i / 2 & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < 4; kk++) {
            unsigned long long da = fixed | (at(sa[s]) + kk * 32) >> 4,
                               db = fixed | (at(sb[s]) + kk * 32) >> 4;
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, "
                "%7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
                "%56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0;"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                  "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                  "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                  "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                  "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                  "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                  "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                  "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                : "l"(da), "l"(db));
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::
                         : "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&empty[s])) : "memory");
    }
    for (int j = 0; j < 16; j++)
        for (int h = 0; h < 2; h++)
            *(float2 *)&c[(row + t / 32 * 16 + t % 32 / 4 + h * 8) * n + col + j * 8 + t % 4 * 2] =
                make_float2(d[j * 4 + 2 * h], d[j * 4 + 2 * h + 1]);
}

extern "C" __global__ void spin(volatile int *flag) {
    while (*flag == 0)
        ;
}
