// Products on tensor cores, small enough to follow. nvcc -ptx -lineinfo -arch=sm_90a
#include <cuda_fp16.h>
#include <mma.h>

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// C[16,8] = A[16,16] B[16,8] through ldmatrix and mma.sync.
extern "C" __global__ void mma_one(const __half *a, const __half *b, float *c) {
    __shared__ __align__(16) __half sa[16 * 16], sb[16 * 8];
    int t = threadIdx.x;
    for (int k = t; k < 256; k += 32)
        sa[k] = a[k];
    for (int k = t; k < 128; k += 32)
        sb[k] = b[k];
    __syncwarp();
    unsigned ra[4], rb[2];
    float d[4] = {0};
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
                 : "r"(at(&sa[t % 16 * 16 + t / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(rb[0]), "=r"(rb[1])
                 : "r"(at(&sb[t % 16 * 8])));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    c[t / 4 * 8 + t % 4 * 2] = d[0];
    c[t / 4 * 8 + t % 4 * 2 + 1] = d[1];
    c[(t / 4 + 8) * 8 + t % 4 * 2] = d[2];
    c[(t / 4 + 8) * 8 + t % 4 * 2 + 1] = d[3];
}

extern "C" __global__ void wmma_one(const __half *a, const __half *b, float *c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, row_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    fill_fragment(fc, 0);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_row_major);
}

// C[64,8] = A[64,16] B[16,8] by wgmma, operands K-major without swizzle; `late` waits for nothing.
template <bool WAIT> __device__ void one_wgmma(const __half *a, const __half *b, float *c) {
    __shared__ __align__(128) __half sa[64 * 16], sb[8 * 16];
    int t = threadIdx.x;
    for (int k = t; k < 64 * 16; k += 128) { // core matrices of 8 rows by 16 bytes
        int row = k / 16, col = k % 16;
        sa[row / 8 * 128 + col / 8 * 64 + row % 8 * 8 + col % 8] = a[k];
    }
    for (int k = t; k < 8 * 16; k += 128) {
        int row = k / 16, col = k % 16; // B transposed: row is n
        sb[col / 8 * 64 + row % 8 * 8 + col % 8] = b[col * 8 + row];
    }
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    unsigned long long da = at(sa) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    unsigned long long db = at(sb) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    float d[4] = {-1, -1, -1, -1};
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, "
                 "1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(da), "l"(db), "r"(0));
    asm volatile("wgmma.commit_group.sync.aligned;");
    if (WAIT)
        asm volatile("wgmma.wait_group.sync.aligned 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]));
    int row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
    c[row * 8 + col] = d[0];
    c[row * 8 + col + 1] = d[1];
    c[(row + 8) * 8 + col] = d[2];
    c[(row + 8) * 8 + col + 1] = d[3];
}
extern "C" __global__ void wgmma_one(const __half *a, const __half *b, float *c) {
    one_wgmma<true>(a, b, c);
}
extern "C" __global__ void wgmma_late(const __half *a, const __half *b, float *c) {
    one_wgmma<false>(a, b, c);
}
extern "C" __global__ void mma_divergent(const unsigned *a, float *c) {
    unsigned r = a[threadIdx.x];
    float d[4] = {0};
    if (threadIdx.x < 16)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, "
                     "{%4}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(r));
    c[threadIdx.x] = d[0] + d[3];
}
