/* The instruction forms that are asked of the hardware, for the recorder (CUDA) and for the test
 * that holds the simulator to its answers. */
#ifndef HARDWARE_FORMS_H
#define HARDWARE_FORMS_H

#include "inputs.h"

/* mma.sync: name, registers of A, B, C (and D), types of A, B, C as inputs, suffixes. */
#define HW_MMA_FORMS(X)                                                                            \
    X(f16_k8, 2, 1, 4, HW_F16, HW_F16, HW_F32, "m16n8k8.row.col.f32.f16.f16.f32")                  \
    X(f16_k16, 4, 2, 4, HW_F16, HW_F16, HW_F32, "m16n8k16.row.col.f32.f16.f16.f32")                \
    X(f16h_k8, 2, 1, 2, HW_F16, HW_F16, HW_F16, "m16n8k8.row.col.f16.f16.f16.f16")                 \
    X(f16h_k16, 4, 2, 2, HW_F16, HW_F16, HW_F16, "m16n8k16.row.col.f16.f16.f16.f16")               \
    X(bf16_k8, 2, 1, 4, HW_BF16, HW_BF16, HW_F32, "m16n8k8.row.col.f32.bf16.bf16.f32")             \
    X(bf16_k16, 4, 2, 4, HW_BF16, HW_BF16, HW_F32, "m16n8k16.row.col.f32.bf16.bf16.f32")           \
    X(tf32_k4, 2, 1, 4, HW_TF32, HW_TF32, HW_F32, "m16n8k4.row.col.f32.tf32.tf32.f32")             \
    X(tf32_k8, 4, 2, 4, HW_TF32, HW_TF32, HW_F32, "m16n8k8.row.col.f32.tf32.tf32.f32")             \
    X(e4m3_k16, 2, 1, 4, HW_E4M3, HW_E4M3, HW_F32, "m16n8k16.row.col.f32.e4m3.e4m3.f32")           \
    X(e4m3_k32, 4, 2, 4, HW_E4M3, HW_E4M3, HW_F32, "m16n8k32.row.col.f32.e4m3.e4m3.f32")           \
    X(e5m2_k32, 4, 2, 4, HW_E5M2, HW_E5M2, HW_F32, "m16n8k32.row.col.f32.e5m2.e5m2.f32")           \
    X(mix8_k32, 4, 2, 4, HW_E4M3, HW_E5M2, HW_F32, "m16n8k32.row.col.f32.e4m3.e5m2.f32")           \
    X(e4m3h_k16, 2, 1, 2, HW_E4M3, HW_E5M2, HW_F16, "m16n8k16.row.col.f16.e4m3.e5m2.f16")          \
    X(e5m2h_k32, 4, 2, 2, HW_E5M2, HW_E4M3, HW_F16, "m16n8k32.row.col.f16.e5m2.e4m3.f16")          \
    X(int8_m8, 1, 1, 2, HW_INT, HW_INT, HW_INT, "m8n8k16.row.col.s32.s8.u8.s32")                   \
    X(int8_k16, 2, 1, 4, HW_INT, HW_INT, HW_INT, "m16n8k16.row.col.s32.u8.s8.s32")                 \
    X(int8_k32, 4, 2, 4, HW_INT, HW_INT, HW_INT, "m16n8k32.row.col.s32.s8.s8.s32")                 \
    X(int8_sat, 4, 2, 4, HW_INT, HW_INT, HW_INT, "m16n8k32.row.col.satfinite.s32.s8.s8.s32")       \
    X(int4_m8, 1, 1, 2, HW_INT, HW_INT, HW_INT, "m8n8k32.row.col.s32.s4.s4.s32")                   \
    X(int4_k32, 2, 1, 4, HW_INT, HW_INT, HW_INT, "m16n8k32.row.col.s32.s4.u4.s32")                 \
    X(int4_sat, 4, 2, 4, HW_INT, HW_INT, HW_INT, "m16n8k64.row.col.satfinite.s32.u4.s4.s32")       \
    X(b1_m8, 1, 1, 2, HW_INT, HW_INT, HW_INT, "m8n8k128.row.col.s32.b1.b1.s32.xor.popc")           \
    X(b1_k128, 2, 1, 4, HW_INT, HW_INT, HW_INT, "m16n8k128.row.col.s32.b1.b1.s32.and.popc")        \
    X(b1_k256, 4, 2, 4, HW_INT, HW_INT, HW_INT, "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")        \
    X(quad_rc, 2, 2, 8, HW_F16, HW_F16, HW_F32, "m8n8k4.row.col.f32.f16.f16.f32")                  \
    X(quad_cr, 2, 2, 8, HW_F16, HW_F16, HW_F32, "m8n8k4.col.row.f32.f16.f16.f32")                  \
    X(quad_h, 2, 2, 4, HW_F16, HW_F16, HW_F16, "m8n8k4.row.row.f16.f16.f16.f16")

/* The same with doubles. */
#define HW_F64_FORMS(X)                                                                            \
    X(f64_m8, 1, 1, 2, "m8n8k4.row.col.f64.f64.f64.f64")                                           \
    X(f64_m8_rz, 1, 1, 2, "m8n8k4.row.col.f64.f64.f64.f64.rz")                                     \
    X(f64_k4, 2, 1, 4, "m16n8k4.row.col.f64.f64.f64.f64")                                          \
    X(f64_k8, 4, 2, 4, "m16n8k8.row.col.f64.f64.f64.f64")                                          \
    X(f64_k16, 8, 4, 4, "m16n8k16.row.col.f64.f64.f64.f64")

/* wgmma m64n8: name, registers of D, types, k and types of the suffix, immediates after scale-d. */
#define HW_WGMMA_FORMS(X)                                                                          \
    X(w_f16, 4, HW_F16, HW_F16, HW_F32, "k16.f32.f16.f16", ", 1, 1, 0, 0")                         \
    X(w_f16h, 2, HW_F16, HW_F16, HW_F16, "k16.f16.f16.f16", ", 1, 1, 0, 0")                        \
    X(w_bf16, 4, HW_BF16, HW_BF16, HW_F32, "k16.f32.bf16.bf16", ", 1, 1, 0, 0")                    \
    X(w_tf32, 4, HW_TF32, HW_TF32, HW_F32, "k8.f32.tf32.tf32", ", 1, 1")                           \
    X(w_e4m3, 4, HW_E4M3, HW_E4M3, HW_F32, "k32.f32.e4m3.e4m3", ", 1, 1")                          \
    X(w_e5m2, 4, HW_E5M2, HW_E4M3, HW_F32, "k32.f32.e5m2.e4m3", ", 1, 1")                          \
    X(w_e4m3h, 2, HW_E4M3, HW_E4M3, HW_F16, "k32.f16.e4m3.e4m3", ", 1, 1")                         \
    X(w_e5m2h, 2, HW_E5M2, HW_E5M2, HW_F16, "k32.f16.e5m2.e5m2", ", 1, 1")                         \
    X(w_s8, 4, HW_INT, HW_INT, HW_INT, "k32.s32.s8.s8", "")                                        \
    X(w_u8sat, 4, HW_INT, HW_INT, HW_INT, "k32.s32.u8.s8.satfinite", "")                           \
    X(w_b1, 4, HW_INT, HW_INT, HW_INT, "k256.s32.b1.b1.and.popc", "")                              \
    X(w_neg_a, 4, HW_F16, HW_F16, HW_F32, "k16.f32.f16.f16", ", -1, 1, 0, 0")                      \
    X(w_neg_ab, 4, HW_BF16, HW_BF16, HW_F32, "k16.f32.bf16.bf16", ", -1, -1, 0, 0")

/* Seeds. */
HW_FN uint64_t hw_seed(int group, int form, int dist, int operand) {
    return (uint64_t)(((group * 64 + form) * 16 + dist) * 4 + operand);
}
/* Accumulators of integers are large in every other distribution. */
HW_FN enum hw_type hw_acc(enum hw_type t, int dist) {
    return t == HW_INT && (dist & 1) ? HW_INT_HIGH : t;
}

/* wgmma m64n64k16.f32.bf16.bf16, layouts. Shared memory is random; what is read is a question of
 * descriptors. */
struct hw_layout {
    int trans_a, trans_b, in_registers;
    unsigned start_a, lead_a, stride_a, base_a, start_b, lead_b, stride_b, base_b;
    unsigned mode; /* of the descriptors: 0 none, 1 128, 2 64, 3 32 bytes */
};
#define HW_SHARED_WORDS 12288u /* 48 KiB */
static const struct hw_layout hw_layouts[] = {
    {0, 0, 0, 0, 128, 256, 0, 16384, 128, 256, 0, 0},
    {0, 0, 0, 0, 2048, 128, 0, 16384, 2048, 128, 0, 0},
    {0, 0, 0, 0, 16, 256, 0, 16384, 16, 256, 0, 3},
    {0, 0, 0, 0, 16, 512, 0, 16384, 16, 512, 0, 2},
    {0, 0, 0, 0, 16, 1024, 0, 16384, 16, 1024, 0, 1},
    {0, 0, 0, 32, 16, 1024, 0, 16384 + 96, 16, 1024, 0, 1},
    {0, 0, 0, 384, 16, 1024, 3, 16384 + 640, 16, 1024, 5, 1}, /* patterns off their boundary */
    {0, 0, 0, 384, 16, 1024, 0, 16384 + 640, 16, 1024, 0, 1},
    {0, 0, 0, 256, 16, 512, 2, 16384 + 128, 16, 512, 1, 2},
    {0, 0, 0, 0, 2048, 1024, 0, 16384, 4096, 1024, 0, 1}, /* does the leading offset matter? */
    {1, 0, 0, 0, 128, 256, 0, 16384, 128, 256, 0, 0},
    {0, 1, 0, 0, 128, 256, 0, 16384, 128, 256, 0, 0},
    {1, 1, 0, 0, 1024, 128, 0, 16384, 1024, 128, 0, 0},
    {1, 1, 0, 0, 512, 256, 0, 16384, 512, 256, 0, 3},
    {1, 1, 0, 0, 256, 2048, 0, 16384, 256, 2048, 0, 3},
    {1, 1, 0, 0, 1024, 512, 0, 16384, 1024, 512, 0, 2},
    {1, 1, 0, 0, 512, 4096, 0, 16384, 512, 4096, 0, 2},
    {1, 1, 0, 0, 2048, 1024, 0, 16384, 2048, 1024, 0, 1},
    {1, 1, 0, 128, 2048, 1024, 1, 16384 + 256, 2048, 1024, 2, 1},
    {0, 0, 1, 0, 0, 0, 0, 16384, 16, 1024, 0, 1},
    {0, 1, 1, 0, 0, 0, 0, 16384, 2048, 1024, 0, 1},
};
#define HW_LAYOUTS (sizeof hw_layouts / sizeof *hw_layouts)
HW_FN uint64_t hw_descriptor(unsigned start, unsigned lead, unsigned stride, unsigned base,
                             unsigned mode) {
    return (uint64_t)(start >> 4) | (uint64_t)(lead >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
           (uint64_t)base << 49 | (uint64_t)mode << 62;
}

/* Tensor copies. Types and modes by the driver's numbers. */
struct hw_copy {
    const char *name;
    int type; /* CUtensorMapDataType */
    unsigned rank;
    unsigned extent[5], pitch[5]; /* pitch in bytes, of dimensions 1 and up */
    unsigned box[5], step[5];
    int swizzle; /* 0 none, 1 32, 2 64, 3 128 */
    int nan;
    int at[5];
    int op; /* -1 load, 0 store, 1 … reductions: add min max inc dec and or xor */
};
#define HW_GLOBAL_WORDS 16384u
#define HW_BOX_WORDS    2048u
#define HW_COPY_AT      1152u /* the box's shared address: a multiple of 128, not of 1024 */
static const struct hw_copy hw_copies[] = {
    {"1d", 7, 1, {1000}, {0}, {64}, {1}, 0, 0, {960}, -1},
    {"1d-negative", 7, 1, {1000}, {0}, {64}, {1}, 0, 0, {-3}, -1},
    {"2d", 6, 2, {61, 33}, {0, 128}, {64, 8}, {1, 1}, 0, 0, {0, 0}, -1},
    {"2d-edge", 6, 2, {61, 33}, {0, 128}, {64, 8}, {1, 1}, 0, 0, {30, 28}, -1},
    {"2d-32", 6, 2, {61, 33}, {0, 128}, {16, 16}, {1, 1}, 1, 0, {8, 2}, -1},
    {"2d-64", 6, 2, {61, 33}, {0, 128}, {32, 16}, {1, 1}, 2, 0, {-5, -1}, -1},
    {"2d-128", 6, 2, {61, 33}, {0, 128}, {64, 16}, {1, 1}, 3, 0, {0, 20}, -1},
    {"2d-128-short", 7, 2, {40, 33}, {0, 160}, {8, 16}, {1, 1}, 3, 0, {3, 1}, -1},
    {"2d-64-bytes", 0, 2, {100, 50}, {0, 112}, {48, 10}, {1, 1}, 2, 0, {60, 45}, -1},
    {"2d-nan", 9, 2, {61, 33}, {0, 128}, {64, 4}, {1, 1}, 3, 1, {-8, 31}, -1},
    {"2d-nan-f32", 7, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 1, {10, -2}, -1},
    {"2d-nan-f64", 8, 2, {30, 33}, {0, 256}, {16, 4}, {1, 1}, 0, 1, {20, -2}, -1},
    {"3d", 7, 3, {20, 9, 7}, {0, 80, 720}, {8, 4, 3}, {1, 1, 1}, 0, 0, {16, 7, 5}, -1},
    {"3d-steps", 7, 3, {20, 9, 7}, {0, 80, 720}, {8, 7, 5}, {1, 3, 2}, 0, 0, {4, 1, 0}, -1},
    {"3d-step-0", 7, 3, {20, 9, 7}, {0, 80, 720}, {8, 7, 5}, {2, 3, 2}, 0, 0, {4, 1, 0}, -1},
    {"4d-128",
     6,
     4,
     {64, 5, 4, 3},
     {0, 128, 640, 2560},
     {64, 2, 2, 2},
     {1, 1, 1, 1},
     3,
     0,
     {0, 4, -1, 2},
     -1},
    {"5d",
     7,
     5,
     {12, 7, 5, 4, 3},
     {0, 48, 336, 1680, 6720},
     {8, 4, 3, 2, 2},
     {1, 1, 1, 1, 1},
     0,
     0,
     {6, -1, 1, 3, 1},
     -1},
    {"ftz", 10, 1, {1000}, {0}, {64}, {1}, 0, 0, {0}, -1},
    {"tf32", 11, 1, {1000}, {0}, {256}, {1}, 0, 0, {0}, -1},
    {"tf32-ftz", 12, 1, {1000}, {0}, {256}, {1}, 0, 0, {0}, -1},
    {"store", 6, 2, {61, 33}, {0, 128}, {64, 8}, {1, 1}, 3, 0, {-5, 30}, 0},
    {"store-tf32", 11, 1, {1000}, {0}, {64}, {1}, 0, 0, {0}, 0},
    {"store-3d", 7, 3, {20, 9, 7}, {0, 80, 720}, {8, 7, 5}, {1, 3, 2}, 0, 0, {14, 1, 0}, 0},
    {"add-u32", 2, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 0, {-2, 31}, 1},
    {"add-f16", 6, 2, {61, 33}, {0, 128}, {64, 4}, {1, 1}, 3, 0, {0, 0}, 1},
    {"add-bf16", 9, 2, {61, 33}, {0, 128}, {64, 4}, {1, 1}, 0, 0, {0, 0}, 1},
    {"add-f32", 7, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 0, {0, 0}, 1},
    {"min-f16", 6, 2, {61, 33}, {0, 128}, {64, 4}, {1, 1}, 0, 0, {0, 0}, 2},
    {"max-bf16", 9, 2, {61, 33}, {0, 128}, {64, 4}, {1, 1}, 0, 0, {0, 0}, 3},
    {"min-s32", 3, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 0, {0, 0}, 2},
    {"max-u64", 4, 2, {16, 33}, {0, 128}, {16, 4}, {1, 1}, 0, 0, {0, 0}, 3},
    {"inc-u32", 2, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 0, {0, 0}, 4},
    {"dec-u32", 2, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 0, {0, 0}, 5},
    {"and-u32", 2, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 0, {0, 0}, 6},
    {"or-u64", 4, 2, {16, 33}, {0, 128}, {16, 4}, {1, 1}, 0, 0, {0, 0}, 7},
    {"xor-s32", 3, 2, {30, 33}, {0, 128}, {32, 4}, {1, 1}, 0, 0, {0, 0}, 8},
};
#define HW_COPIES (sizeof hw_copies / sizeof *hw_copies)
/* Contents: floats of every size for 32-bit floats, bits otherwise. */
HW_FN uint32_t hw_memory(int type, unsigned seed, unsigned word) {
    enum hw_dist dist = (word & 7) == 1 ? HW_TINY : (word & 7) == 2 ? HW_BITS : HW_WIDE;
    if (type >= 7 && type != 8 && type != 9)
        return hw_word(seed, HW_F32, dist, word) | ((word & 15) == 5 ? 0x1000u : 0);
    if (type == 6 || type == 9)
        return hw_word(seed, type == 6 ? HW_F16 : HW_BF16, dist, word);
    return hw_word(seed, HW_INT, HW_BITS, word) & ((word & 3) == 0 ? 0xffu : ~0u);
}
/* Results of copies are kept as a word of hash for 64 bytes, small ones whole. */
#define HW_HASH_WORDS 16u

/* Which elements a wmma fragment holds: memory is numbered, registers are kept. */
#define HW_WMMA_FORMS(X)                                                                           \
    X(a_row, 8, "load.a.sync.aligned.row.m16n16k16.global.f16")                                    \
    X(a_col, 8, "load.a.sync.aligned.col.m16n16k16.global.f16")                                    \
    X(b_row, 8, "load.b.sync.aligned.row.m16n16k16.global.f16")                                    \
    X(b_col, 8, "load.b.sync.aligned.col.m16n16k16.global.f16")                                    \
    X(c_row, 8, "load.c.sync.aligned.row.m16n16k16.global.f32")                                    \
    X(c_half, 4, "load.c.sync.aligned.row.m16n16k16.global.f16")                                   \
    X(a_bf16, 4, "load.a.sync.aligned.row.m16n16k16.global.bf16")                                  \
    X(b_s8, 2, "load.b.sync.aligned.col.m16n16k16.global.s8")                                      \
    X(a_tf32, 4, "load.a.sync.aligned.row.m16n16k8.global.tf32")                                   \
    X(b_tf32, 4, "load.b.sync.aligned.col.m16n16k8.global.tf32")                                   \
    X(a_m8, 8, "load.a.sync.aligned.row.m8n32k16.global.f16")                                      \
    X(b_n32, 8, "load.b.sync.aligned.col.m8n32k16.global.f16")                                     \
    X(c_n32, 8, "load.c.sync.aligned.row.m8n32k16.global.f32")                                     \
    X(a_m32, 8, "load.a.sync.aligned.row.m32n8k16.global.f16")                                     \
    X(b_n8, 8, "load.b.sync.aligned.col.m32n8k16.global.f16")                                      \
    X(c_m32, 8, "load.c.sync.aligned.row.m32n8k16.global.f32")

#define HW_MATRIX_FORMS(X)                                                                         \
    X(1, 0, "m8n8.x1.shared.b16")                                                                  \
    X(2, 0, "m8n8.x2.shared.b16")                                                                  \
    X(4, 0, "m8n8.x4.shared.b16")                                                                  \
    X(1, 1, "m8n8.x1.trans.shared.b16")                                                            \
    X(2, 1, "m8n8.x2.trans.shared.b16")                                                            \
    X(4, 1, "m8n8.x4.trans.shared.b16")
HW_FN unsigned hw_matrix_row(unsigned lane) {
    return (lane * 5 + 3) % 32 * 16;
}

/* Steps on one mbarrier, with what each of them answers. */
enum hw_step { HW_INIT, HW_ARRIVE, HW_EXPECT, HW_COMPLETE, HW_DROP, HW_ARRIVE_EXPECT, HW_STEPS };
static const struct {
    int step;
    unsigned value;
} hw_steps[] = {
    {HW_INIT, 3},           {HW_ARRIVE, 1},    {HW_EXPECT, 4096},
    {HW_ARRIVE, 1},         {HW_ARRIVE, 1},    {HW_COMPLETE, 4000},
    {HW_COMPLETE, 96},      {HW_COMPLETE, 64}, {HW_ARRIVE, 2},
    {HW_ARRIVE_EXPECT, 64}, {HW_DROP, 1},      {HW_ARRIVE, 2},
    {HW_ARRIVE, 1},         {HW_ARRIVE, 1},    {HW_ARRIVE_EXPECT, 1000000},
    {HW_COMPLETE, 1000000}, {HW_ARRIVE, 1},
};
#define HW_BARRIER_STEPS (sizeof hw_steps / sizeof *hw_steps)

#endif
