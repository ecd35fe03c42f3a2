/* Forms of the tensor cores' instructions, for the kernels (tensor.cu) and for the table.
 *
 * sm_90 has no instruction for some of them, and the compiler writes others: mma of 8-bit floats
 * becomes two mma of halves and an addition, int4 two of int8, b1 with xor two with and, and
 * mma.m8n8k4 of halves a sequence of fma. Sparse mma is left out, for the simulator refuses it. */
#ifndef CORPUS_TENSOR_H
#define CORPUS_TENSOR_H

/* mma.sync: name, registers of A, B, C (and D), types of A, B, fill of C, suffixes. */
#define CORPUS_MMA(X)                                                                              \
    X(f16_k8, 2, 1, 4, F16, F16, F32, DISTS, "m16n8k8.row.col.f32.f16.f16.f32")                    \
    X(f16_k16, 4, 2, 4, F16, F16, F32, DISTS, "m16n8k16.row.col.f32.f16.f16.f32")                  \
    X(f16h_k8, 2, 1, 2, F16, F16, F16, DISTS, "m16n8k8.row.col.f16.f16.f16.f16")                   \
    X(f16h_k16, 4, 2, 2, F16, F16, F16, DISTS, "m16n8k16.row.col.f16.f16.f16.f16")                 \
    X(bf16_k8, 2, 1, 4, BF16, BF16, F32, DISTS, "m16n8k8.row.col.f32.bf16.bf16.f32")               \
    X(bf16_k16, 4, 2, 4, BF16, BF16, F32, DISTS, "m16n8k16.row.col.f32.bf16.bf16.f32")             \
    X(tf32_k4, 2, 1, 4, TF32, TF32, F32, DISTS, "m16n8k4.row.col.f32.tf32.tf32.f32")               \
    X(tf32_k8, 4, 2, 4, TF32, TF32, F32, DISTS, "m16n8k8.row.col.f32.tf32.tf32.f32")               \
    X(e4m3_k16, 2, 1, 4, E4M3, E4M3, F32, DISTS, "m16n8k16.row.col.f32.e4m3.e4m3.f32")             \
    X(e4m3_k32, 4, 2, 4, E4M3, E4M3, F32, DISTS, "m16n8k32.row.col.f32.e4m3.e4m3.f32")             \
    X(e5m2_k32, 4, 2, 4, E5M2, E5M2, F32, DISTS, "m16n8k32.row.col.f32.e5m2.e5m2.f32")             \
    X(mix8_k32, 4, 2, 4, E4M3, E5M2, F32, DISTS, "m16n8k32.row.col.f32.e4m3.e5m2.f32")             \
    X(e4m3h_k16, 2, 1, 2, E4M3, E5M2, F16, DISTS, "m16n8k16.row.col.f16.e4m3.e5m2.f16")            \
    X(e5m2h_k32, 4, 2, 2, E5M2, E4M3, F16, DISTS, "m16n8k32.row.col.f16.e5m2.e4m3.f16")            \
    X(int8_m8, 1, 1, 2, INT, INT, INT, HIGH, "m8n8k16.row.col.s32.s8.u8.s32")                      \
    X(int8_k16, 2, 1, 4, INT, INT, INT, HIGH, "m16n8k16.row.col.s32.u8.s8.s32")                    \
    X(int8_k32, 4, 2, 4, INT, INT, INT, HIGH, "m16n8k32.row.col.s32.s8.s8.s32")                    \
    X(int8_sat, 4, 2, 4, INT, INT, INT, HIGH, "m16n8k32.row.col.satfinite.s32.s8.s8.s32")          \
    X(int4_m8, 1, 1, 2, INT, INT, INT, HIGH, "m8n8k32.row.col.s32.s4.s4.s32")                      \
    X(int4_k32, 2, 1, 4, INT, INT, INT, HIGH, "m16n8k32.row.col.s32.s4.u4.s32")                    \
    X(int4_sat, 4, 2, 4, INT, INT, INT, HIGH, "m16n8k64.row.col.satfinite.s32.u4.s4.s32")          \
    X(b1_m8, 1, 1, 2, INT, INT, INT, HIGH, "m8n8k128.row.col.s32.b1.b1.s32.xor.popc")              \
    X(b1_k128, 2, 1, 4, INT, INT, INT, HIGH, "m16n8k128.row.col.s32.b1.b1.s32.and.popc")           \
    X(b1_k256, 4, 2, 4, INT, INT, INT, HIGH, "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")           \
    X(quad_rc, 2, 2, 8, F16, F16, F32, DISTS, "m8n8k4.row.col.f32.f16.f16.f32")                    \
    X(quad_cr, 2, 2, 8, F16, F16, F32, DISTS, "m8n8k4.col.row.f32.f16.f16.f32")                    \
    X(quad_h, 2, 2, 4, F16, F16, F16, DISTS, "m8n8k4.row.row.f16.f16.f16.f16")

/* The same with doubles. */
#define CORPUS_MMA_F64(X)                                                                          \
    X(f64_m8, 1, 1, 2, "m8n8k4.row.col.f64.f64.f64.f64")                                           \
    X(f64_m8_rz, 1, 1, 2, "m8n8k4.row.col.rz.f64.f64.f64.f64")                                     \
    X(f64_k4, 2, 1, 4, "m16n8k4.row.col.f64.f64.f64.f64")                                          \
    X(f64_k8, 4, 2, 4, "m16n8k8.row.col.f64.f64.f64.f64")                                          \
    X(f64_k16, 8, 4, 4, "m16n8k16.row.col.f64.f64.f64.f64")

/* wgmma m64n8 from shared memory, A of 64 rows and B of 8, K-major, not swizzled: name, registers
 * of D, types, fill of D, k and types of the suffix, immediates after scale-d. */
#define CORPUS_WGMMA(X)                                                                            \
    X(f16, 4, F16, F16, F32, DISTS, "k16.f32.f16.f16", ", 1, 1, 0, 0")                             \
    X(f16h, 2, F16, F16, F16, DISTS, "k16.f16.f16.f16", ", 1, 1, 0, 0")                            \
    X(bf16, 4, BF16, BF16, F32, DISTS, "k16.f32.bf16.bf16", ", 1, 1, 0, 0")                        \
    X(tf32, 4, TF32, TF32, F32, DISTS, "k8.f32.tf32.tf32", ", 1, 1")                               \
    X(e4m3, 4, E4M3, E4M3, F32, DISTS, "k32.f32.e4m3.e4m3", ", 1, 1")                              \
    X(e5m2, 4, E5M2, E4M3, F32, DISTS, "k32.f32.e5m2.e4m3", ", 1, 1")                              \
    X(e4m3h, 2, E4M3, E4M3, F16, DISTS, "k32.f16.e4m3.e4m3", ", 1, 1")                             \
    X(e5m2h, 2, E5M2, E5M2, F16, DISTS, "k32.f16.e5m2.e5m2", ", 1, 1")                             \
    X(s8, 4, INT, INT, INT, HIGH, "k32.s32.s8.s8", "")                                             \
    X(u8sat, 4, INT, INT, INT, HIGH, "k32.s32.u8.s8.satfinite", "")                                \
    X(b1, 4, INT, INT, INT, HIGH, "k256.s32.b1.b1.and.popc", "")                                   \
    X(neg_a, 4, F16, F16, F32, DISTS, "k16.f32.f16.f16", ", -1, 1, 0, 0")                          \
    X(neg_ab, 4, BF16, BF16, F32, DISTS, "k16.f32.bf16.bf16", ", -1, -1, 0, 0")

/* The same with A in registers. */
#define CORPUS_WGMMA_RS(X)                                                                         \
    X(f16, 4, F16, F16, F32, DISTS, "k16.f32.f16.f16", ", 1, 1, 0")                                \
    X(f16h, 2, F16, F16, F16, DISTS, "k16.f16.f16.f16", ", 1, 1, 0")                               \
    X(tf32, 4, TF32, TF32, F32, DISTS, "k8.f32.tf32.tf32", ", 1, 1")                               \
    X(e4m3, 4, E4M3, E5M2, F32, DISTS, "k32.f32.e4m3.e5m2", ", 1, 1")                              \
    X(u8, 4, INT, INT, INT, HIGH, "k32.s32.u8.u8", "")

/* wgmma m64n64k16.f32.bf16.bf16: name, kernel (majors of A and B, r: A in registers), start,
 * leading and stride offset and base offset of A and of B, mode. Shared memory is random: what is
 * read is a question of descriptors. */
#define CORPUS_LAYOUTS(X)                                                                          \
    X(plain, kk, 0, 128, 256, 0, 16384, 128, 256, 0, 0)                                            \
    X(plain_far, kk, 0, 2048, 128, 0, 16384, 2048, 128, 0, 0)                                      \
    X(32, kk, 0, 16, 256, 0, 16384, 16, 256, 0, 3)                                                 \
    X(64, kk, 0, 16, 512, 0, 16384, 16, 512, 0, 2)                                                 \
    X(128, kk, 0, 16, 1024, 0, 16384, 16, 1024, 0, 1)                                              \
    X(128_inside, kk, 32, 16, 1024, 0, 16480, 16, 1024, 0, 1)                                      \
    X(128_base, kk, 384, 16, 1024, 3, 17024, 16, 1024, 5, 1)                                       \
    X(128_off, kk, 384, 16, 1024, 0, 17024, 16, 1024, 0, 1)                                        \
    X(64_base, kk, 256, 16, 512, 2, 16512, 16, 512, 1, 2)                                          \
    X(128_lead, kk, 0, 2048, 1024, 0, 16384, 4096, 1024, 0, 1)                                     \
    X(plain_m, mk, 0, 128, 256, 0, 16384, 128, 256, 0, 0)                                          \
    X(plain_n, kn, 0, 128, 256, 0, 16384, 128, 256, 0, 0)                                          \
    X(plain_mn, mn, 0, 1024, 128, 0, 16384, 1024, 128, 0, 0)                                       \
    X(32_mn, mn, 0, 512, 256, 0, 16384, 512, 256, 0, 3)                                            \
    X(32_mn_far, mn, 0, 256, 2048, 0, 16384, 256, 2048, 0, 3)                                      \
    X(64_mn, mn, 0, 1024, 512, 0, 16384, 1024, 512, 0, 2)                                          \
    X(64_mn_far, mn, 0, 512, 4096, 0, 16384, 512, 4096, 0, 2)                                      \
    X(128_mn, mn, 0, 2048, 1024, 0, 16384, 2048, 1024, 0, 1)                                       \
    X(128_mn_base, mn, 128, 2048, 1024, 1, 16640, 2048, 1024, 2, 1)                                \
    X(128_r, rk, 0, 0, 0, 0, 16384, 16, 1024, 0, 1)                                                \
    X(128_rn, rn, 0, 0, 0, 0, 16384, 2048, 1024, 0, 1)

#define CORPUS_MATRIX(X)                                                                           \
    X(x1, 1, "m8n8.x1.shared.b16")                                                                 \
    X(x2, 2, "m8n8.x2.shared.b16")                                                                 \
    X(x4, 4, "m8n8.x4.shared.b16")                                                                 \
    X(x1t, 1, "m8n8.x1.trans.shared.b16")                                                          \
    X(x2t, 2, "m8n8.x2.trans.shared.b16")                                                          \
    X(x4t, 4, "m8n8.x4.trans.shared.b16")

/* wmma through load, mma and store: name, m, n, k, C++ types of factors and sums, layouts. */
#define CORPUS_WMMA(X)                                                                             \
    X(f16, 16, 16, 16, __half, float, row, col, F16, F32)                                          \
    X(f16_cr, 16, 16, 16, __half, float, col, row, F16, F32)                                       \
    X(f16h, 16, 16, 16, __half, __half, row, col, F16, F16)                                        \
    X(bf16, 16, 16, 16, __nv_bfloat16, float, row, row, BF16, F32)                                 \
    X(f16_n32, 8, 32, 16, __half, float, row, col, F16, F32)                                       \
    X(f16_m32, 32, 8, 16, __half, float, row, row, F16, F32)                                       \
    X(s8, 16, 16, 16, signed char, int, row, col, INT, INT)                                        \
    X(u8, 32, 8, 16, unsigned char, int, col, col, INT, INT)                                       \
    X(tf32, 16, 16, 8, nvcuda::wmma::precision::tf32, float, row, col, TF32, F32)                  \
    X(f64, 8, 8, 4, double, double, row, col, F64, F64)

#endif
