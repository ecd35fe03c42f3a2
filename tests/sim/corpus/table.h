/* The rows of the corpus, by file; a file is a .cu and its PTX, here or among the fixtures of the
 * simulator's other tests. */
#ifndef CORPUS_TABLE_H
#define CORPUS_TABLE_H

#include "copies.h"
#include "corpus.h"
#include "tensor.h"

#define CORPUS_FILES(X)                                                                            \
    X(forms, "corpus/forms")                                                                       \
    X(tensor, "corpus/tensor")                                                                     \
    X(copies, "corpus/copies")                                                                     \
    X(memory, "corpus/memory")                                                                     \
    X(warps, "corpus/warps")                                                                       \
    X(async, "corpus/async")                                                                       \
    X(whole, "corpus/whole")                                                                       \
    X(gemms, "corpus/gemms")                                                                       \
    X(cute80, "corpus/cute80")                                                                     \
    X(cute90, "corpus/cute90")                                                                     \
    X(bench, "../../bench/sim/kernels")                                                            \
    X(ptx_grid, "ptx/grid")                                                                        \
    X(ptx_async, "ptx/async")                                                                      \
    X(ptx_tensor, "ptx/tensor")

#define OUT(n)                                                                                     \
    { .words = (n), .out = true }
#define OUT_ZERO(n)                                                                                \
    { .words = (n), .out = true, .fill = FILL_ZERO }
#define OUT_OF(n, t, f)                                                                            \
    { .words = (n), .out = true, .fill = FILL_##f, .type = HW_##t }
#define IN(n, f)                                                                                   \
    { .words = (n), .fill = FILL_##f }
#define OF(n, t, f)                                                                                \
    { .words = (n), .fill = FILL_##f, .type = HW_##t }
#define NORMAL(n, t)                                                                               \
    { .words = (n), .fill = FILL_VALUES, .type = HW_##t, .dist = HW_NORMAL }

#define FORM(op, planes, how, f)                                                                   \
    {.file = "corpus/forms",                                                                       \
     .kernel = "op_" #op,                                                                          \
     .grid = {CORPUS_N / 128, 1, 1},                                                               \
     .block = 128,                                                                                 \
     .compare = how,                                                                               \
     .buffers = {IN(3 * CORPUS_N, f), OUT((planes)*CORPUS_N)}},

#define MMA(id, na, nb, nc, ta, tb, tc, how, text)                                                 \
    {.file = "corpus/tensor",                                                                      \
     .kernel = "mma_" #id,                                                                         \
     .grid = {HW_DISTS, 1, 1},                                                                     \
     .block = 32,                                                                                  \
     .buffers = {OF(HW_DISTS * 32 * (na), ta, DISTS), OF(HW_DISTS * 32 * (nb), tb, DISTS),         \
                 OF(HW_DISTS * 32 * (nc), tc, how), OUT(HW_DISTS * 32 * (nc))}},
#define MMA_F64(id, na, nb, nc, text)                                                              \
    {.file = "corpus/tensor",                                                                      \
     .kernel = "mma_" #id,                                                                         \
     .grid = {HW_DISTS, 1, 1},                                                                     \
     .block = 32,                                                                                  \
     .buffers = {OF(HW_DISTS * 64 * (na), F64, DISTS), OF(HW_DISTS * 64 * (nb), F64, DISTS),       \
                 OF(HW_DISTS * 64 * (nc), F64, DISTS), OUT(HW_DISTS * 64 * (nc))}},
#define WGMMA_OF(id, nd, ta, tb, tc, how)                                                          \
    {.file = "corpus/tensor",                                                                      \
     .kernel = "wgmma_" #id,                                                                       \
     .grid = {HW_DISTS, 1, 1},                                                                     \
     .block = 128,                                                                                 \
     .buffers = {OF(HW_DISTS * 512, ta, DISTS), OF(HW_DISTS * 64, tb, DISTS),                      \
                 OF(HW_DISTS * 128 * (nd), tc, how), OUT(HW_DISTS * 128 * (nd))}},
#define WGMMA(id, nd, ta, tb, tc, how, text, imm)    WGMMA_OF(id, nd, ta, tb, tc, how)
#define WGMMA_RS(id, nd, ta, tb, tc, how, text, imm) WGMMA_OF(rs_##id, nd, ta, tb, tc, how)
#define LAYOUT(id, majors, ...)                                                                    \
    {.file = "corpus/tensor",                                                                      \
     .kernel = "layout_" #majors,                                                                  \
     .name = "layout_" #id,                                                                        \
     .grid = {1, 1, 1},                                                                            \
     .block = 128,                                                                                 \
     .buffers = {NORMAL(12288, BF16), NORMAL(512, BF16), OUT(4096)},                               \
     .nints = 9,                                                                                   \
     .ints = {__VA_ARGS__}},
#define MATRIX(id, n, text)                                                                        \
    {.file = "corpus/tensor",                                                                      \
     .kernel = "matrix_" #id,                                                                      \
     .grid = {1, 1, 1},                                                                            \
     .block = 32,                                                                                  \
     .buffers = {OF(128, INT, VALUES), OUT((n)*32 + 128)}},
/* Small numbers: their sums are exact, whatever the order. */
#define WMMA(id, m, n, k, tf, ts, la, lb, fill, sums)                                              \
    {.file = "corpus/tensor",                                                                      \
     .kernel = "wmma_" #id,                                                                        \
     .grid = {1, 1, 1},                                                                            \
     .block = 32,                                                                                  \
     .buffers = {OF(1024, fill, SMALL), OF(1024, fill, SMALL), OF(512, sums, SMALL), OUT(512)}},

/* Into shared memory: the box is the result. Out of it: all of global memory is. */
#define COPY_IN(id, t, n, e, p, b, s, sw, no, bytes, what, ...)                                    \
    {.file = "corpus/copies",                                                                      \
     .kernel = "load_" #n "d",                                                                     \
     .name = "load_" #id,                                                                          \
     .grid = {1, 1, 1},                                                                            \
     .block = 32,                                                                                  \
     .illegal = ILLEGAL,                                                                           \
     .buffers = {OF(8192, what, DISTS), OUT(1024)},                                                \
     .maps = {{n, t, 0, e, p, b, s, sw, no}},                                                      \
     .nints = 6,                                                                                   \
     .ints = {bytes, __VA_ARGS__}},
#define COPY_OUT(k, id, t, n, e, p, b, s, sw, what, ...)                                           \
    {.file = "corpus/copies",                                                                      \
     .kernel = "store_" #k,                                                                        \
     .name = "store_" #k "_" #id,                                                                  \
     .grid = {1, 1, 1},                                                                            \
     .block = 32,                                                                                  \
     .illegal = ILLEGAL,                                                                           \
     .buffers = {OUT_OF(8192, what, DISTS), OF(1024, what, DISTS)},                                \
     .maps = {{n, t, 0, e, p, b, s, sw, 0}},                                                       \
     .nints = 5,                                                                                   \
     .ints = {__VA_ARGS__}},

#define ROW(f, k, g, b, ...)                                                                       \
    {                                                                                              \
        .file = f, .kernel = #k, .grid = {g, 1, 1}, .block = b, .buffers = { __VA_ARGS__ }         \
    }
#define ROW_N(f, k, g, b, n, ...)                                                                  \
    {                                                                                              \
        .file = f, .kernel = #k, .grid = {g, 1, 1}, .block = b, .buffers = {__VA_ARGS__},          \
        .nints = 1, .ints = {                                                                      \
            n                                                                                      \
        }                                                                                          \
    }
#define ROW_NEAR(f, k, g, b, n, how, ...)                                                          \
    {                                                                                              \
        .file = f, .kernel = #k, .grid = {g, 1, 1}, .block = b, .compare = how,                    \
        .buffers = {__VA_ARGS__}, .nints = (n) ? 1 : 0, .ints = {                                  \
            n                                                                                      \
        }                                                                                          \
    }
#define BITS(n) OF(n, INT, VALUES)
#define WHOLE   "corpus/whole"
#define GEMMS   "corpus/gemms"
/* C[128,128] = A[128,128] B of halves. */
#define GEMM_128(f, k, gx, gy, b, how, ...)                                                        \
    {                                                                                              \
        .file = f, .kernel = #k, .grid = {gx, gy, 1}, .block = b, .compare = how, .nints = 3,      \
        .ints = {128, 128, 128}, __VA_ARGS__                                                       \
    }
#define SQUARE(which, t, rows)                                                                     \
    { 2, t, which, L(128, 128), L(0, 256), L(64, rows), L(1, 1), 3, 0 }

static const struct corpus_row corpus[] = {
/* The lists end in a comma of their own. */
/* clang-format off */
#include "forms.def"
    CORPUS_MMA(MMA)
    CORPUS_MMA_F64(MMA_F64)
    CORPUS_WGMMA(WGMMA)
    CORPUS_WGMMA_RS(WGMMA_RS)
    CORPUS_LAYOUTS(LAYOUT)
    CORPUS_MATRIX(MATRIX)
    MATRIX(move, 0, "")
    CORPUS_WMMA(WMMA)
#define ILLEGAL false
    CORPUS_LOADS(COPY_IN)
    CORPUS_STORES(COPY_OUT)
#undef ILLEGAL
#define ILLEGAL true
    CORPUS_ILLEGAL_LOADS(COPY_IN)
    CORPUS_ILLEGAL_STORES(COPY_OUT)
#undef ILLEGAL
    /* clang-format on */
    {.file = "corpus/copies",
     .kernel = "multicast_tensor",
     .grid = {2, 1, 1},
     .block = 32,
     .buffers = {BITS(512), OUT(1024)},
     .maps = {{2, 7, 0, L(32, 16), L(0, 128), L(32, 8), L(1, 1), 3, 0}}},
    {.file = "corpus/copies",
     .kernel = "changed_map",
     .grid = {1, 1, 1},
     .block = 32,
     .buffers = {BITS(2048), {.words = 32}, OUT(256)},
     .maps = {{2, 7, 0, L(32, 64), L(0, 128), L(32, 8), L(1, 1), 0, 0}}},
    ROW("corpus/memory", load_widths, 1, 32, BITS(1024), OUT(26 * 32)),
    ROW("corpus/memory", load_vectors, 1, 32, BITS(1024), OUT(6 * 32)),
    ROW("corpus/memory", store_widths, 1, 32, BITS(64), OUT_ZERO(1024)),
    {.file = "corpus/memory",
     .kernel = "spaces",
     .grid = {1, 1, 1},
     .block = 32,
     .shared = 128,
     .buffers = {BITS(64), OUT(6 * 32)}},
    ROW("corpus/memory", hints, 1, 32, BITS(64), OUT_ZERO(96)),
    ROW("corpus/memory", atoms_32, 1, 32, OUT_OF(25 * 32, INT, VALUES), BITS(32),
        OUT_ZERO(25 * 32)),
    ROW("corpus/memory", atoms_64, 1, 32, OUT_OF(30 * 32, INT, VALUES), BITS(64),
        OUT_ZERO(30 * 32)),
    ROW("corpus/memory", atoms_f32, 1, 32, OUT_OF(256, F32, DISTS), OF(32, F32, DISTS),
        OUT_ZERO(96)),
    ROW("corpus/memory", atoms_f64, 1, 32, OUT_OF(128, F64, DISTS), OF(64, F64, DISTS),
        OUT_ZERO(128)),
    ROW("corpus/memory", atoms_halves, 1, 32, OUT_OF(448, F16, DISTS), OF(64, BF16, DISTS),
        OUT_ZERO(192)),
    ROW("corpus/memory", atoms_shared, 1, 128, BITS(128), OUT(76)),
    ROW("corpus/warps", shuffles, 1, 32, BITS(32), OUT(14 * 32)),
    ROW("corpus/warps", votes, 1, 32, BITS(32), OUT(13 * 32)),
    ROW("corpus/warps", barriers, 1, 128, BITS(128), OUT(5 * 128)),
    {.file = "corpus/warps",
     .kernel = "identity",
     .grid = {4, 2, 1},
     .block = 64,
     .shared = 256,
     .buffers = {OUT(8 * 64 * 24)}},
    ROW("corpus/warps", distributed, 8, 64, BITS(512), OUT(8 * 192)),
    ROW("corpus/warps", flow, 1, 256, BITS(256), OUT(256)),
    ROW("corpus/warps", by_table, 1, 64, BITS(64), OUT(64)),
    ROW("corpus/warps", registers, 1, 256, BITS(256), OUT(256)),
    ROW("corpus/async", cp_async, 1, 32, BITS(128), OUT(288)),
    ROW("corpus/async", cp_async_arrives, 1, 64, BITS(128), OUT(128)),
    ROW("corpus/async", bulk, 1, 64, BITS(512), OUT(256)),
    ROW("corpus/async", bulk_reduce_integers, 1, 64, BITS(64), OUT_OF(13 * 64, INT, VALUES)),
    ROW("corpus/async", bulk_reduce_f16, 1, 64, OF(64, F16, DISTS), OUT_OF(192, F16, DISTS)),
    ROW("corpus/async", bulk_reduce_bf16, 1, 64, OF(64, BF16, DISTS), OUT_OF(192, BF16, DISTS)),
    ROW("corpus/async", bulk_reduce_f32, 1, 64, OF(64, F32, DISTS), OUT_OF(64, F32, DISTS)),
    ROW("corpus/async", bulk_reduce_f64, 1, 64, OF(64, F64, DISTS), OUT_OF(64, F64, DISTS)),
    ROW("corpus/async", neighbour, 4, 64, BITS(256), OUT(256)),
    ROW("corpus/async", red_async, 2, 64, BITS(128), OUT(128)),
    ROW("corpus/async", mbarrier_steps, 1, 1, OUT(51)),
    ROW("corpus/async", mbarrier_tokens, 1, 32, OUT(64)),
    ROW_N(WHOLE, axpy, 3, 64, 1000, NORMAL(1000, F32), OUT_OF(1000, F32, VALUES)),
    ROW_N(WHOLE, axpy4, 4, 64, 1003, NORMAL(1024, F32), OUT_OF(1024, F32, VALUES)),
    ROW_NEAR(WHOLE, gelu_erf, 8, 128, 1000, NEAR_F32(4), NORMAL(1000, F32), OUT(1000)),
    ROW_NEAR(WHOLE, silu_fast, 8, 128, 1000, NEAR_F32(8), NORMAL(1000, F32), OUT(1000)),
    ROW_NEAR(WHOLE, functions_whole, 8, 128, 1000, NEAR_F32(16), NORMAL(1000, F32), OUT(1000)),
    ROW_N(WHOLE, bias_half2, 8, 64, 500, NORMAL(512, F16), NORMAL(32, F16), OUT(512)),
    ROW_N(WHOLE, scale_bf16, 8, 64, 512, OF(512, BF16, DISTS), OUT(512)),
    ROW_N(WHOLE, quantise, 6, 64, 384, OF(768, F32, DISTS), OUT(192), OUT(768)),
    ROW_N(WHOLE, random_bits, 8, 64, 500, OUT(512)),
    ROW_N(WHOLE, sum_rows, 4, 128, 300, NORMAL(1200, F32), OUT(4)),
    ROW(WHOLE, sum_tree, 4, 256, NORMAL(1024, F32), OUT(4)),
    ROW_N(WHOLE, sum_integers, 4, 64, 1000, BITS(1000), OUT_ZERO(1)),
    ROW_N(WHOLE, sum_doubles, 1, 32, 300, NORMAL(600, F64), OUT(2)),
    ROW_N(WHOLE, argmax, 8, 32, 100, NORMAL(800, F32), OUT(8)),
    ROW_NEAR(WHOLE, softmax, 4, 128, 250, NEAR_F32(2), NORMAL(1000, F32), OUT(1000)),
    ROW_NEAR(WHOLE, layer_norm, 4, 128, 250, NEAR_F32(4), NORMAL(1000, F32), OUT(1000)),
    ROW_NEAR(WHOLE, rms_norm_half, 4, 32, 128, ULPS_F16(1), NORMAL(256, F16), OUT(256)),
    ROW(WHOLE, cluster_norm, 8, 64, NORMAL(512, F32), OUT(512)),
    {.file = WHOLE,
     .kernel = "cooper"
               "ative_"
               "mean",
     .grid = {8, 1, 1},
     .block = 64,
     .cooperative = true,
     .buffers = {NORMAL(512, F32), OUT(8), OUT_ZERO(1), OUT(512)}},
    {.file = WHOLE,
     .kernel = "grid_mean",
     .grid = {8, 1, 1},
     .block = 64,
     .cooperative = true,
     .buffers = {NORMAL(512, F32), OUT(8), OUT(512)}},
    ROW(WHOLE, scan_warp, 4, 64, BITS(256), OUT(256)),
    ROW(WHOLE, scan_block, 2, 256, NORMAL(512, F32), OUT(512)),
    ROW(WHOLE, scan_shared, 1, 128, BITS(256), OUT(256)),
    ROW_N(WHOLE, compact, 1, 32, 512, BITS(512), OUT(512), OUT(1)),
    ROW_N(WHOLE, transpose, 4, 128, 64, NORMAL(4096, F32), OUT(4096)),
    ROW_N(WHOLE, stencil, 64, 64, 64, NORMAL(4096, F32), OUT(4096)),
    ROW_N(WHOLE, convolve, 4, 128, 500, NORMAL(512, F32), NORMAL(8, F32), OUT(512)),
    ROW(WHOLE, sort_block, 2, 256, BITS(512), OUT(512)),
    ROW(WHOLE, gather_embedding, 8, 32, NORMAL(1024, F32), BITS(8), OUT(512)),
    ROW_NEAR(WHOLE, cross_entropy, 8, 32, 100, NEAR_F32(8), NORMAL(800, F32), BITS(8), OUT(8)),
    ROW_N(GEMMS, gemm_naive, 32, 128, 64, NORMAL(4096, F32), NORMAL(4096, F32), OUT(4096)),
    ROW_N(GEMMS, gemm_tiled, 16, 256, 64, NORMAL(4096, F32), NORMAL(4096, F32), OUT(4096)),
    ROW_N(GEMMS, gemm_double, 8, 128, 32, NORMAL(2048, F64), NORMAL(2048, F64), OUT(2048)),
    ROW_N(GEMMS, gemm_half2, 32, 128, 64, NORMAL(2048, F16), NORMAL(2048, F16), OUT(2048)),
    ROW_N(GEMMS, gemm_dp4a, 32, 128, 64, BITS(1024), BITS(1024), OUT(4096)),
    ROW_N(GEMMS, gemm_imma, 32, 32, 64, BITS(1024), BITS(1024), OUT(4096)),
    ROW_NEAR(GEMMS, gemm_tf32, 32, 32, 64, NEAR_F32(8), NORMAL(4096, TF32), NORMAL(4096, TF32),
             OUT(4096)),
    ROW_N(GEMMS, gemm_split_k, 128, 128, 64, OF(4096, F32, SMALL), OF(4096, F32, SMALL),
          OUT_ZERO(4096)),
    ROW_NEAR(GEMMS, attention_online, 1, 64, 0, NEAR_F32(32), NORMAL(2048, F32), NORMAL(2048, F32),
             NORMAL(2048, F32), OUT(2048)),
    ROW_NEAR(GEMMS, attention_mma, 1, 128, 0, NEAR_F32(4096), NORMAL(2048, F16), NORMAL(2048, F16),
             NORMAL(2048, F16), OUT(4096)),
    GEMM_128("corpus/cute80", cute_f16, 2, 2, 128, NEAR_F32(16),
             .buffers = {NORMAL(8192, F16), NORMAL(8192, F16), OUT(16384)}),
    GEMM_128("corpus/cute80", cute_bf16, 2, 2, 128, NEAR_F32(16),
             .buffers = {NORMAL(8192, BF16), NORMAL(8192, BF16), OUT(16384)}),
    GEMM_128("corpus/cute90", cute_wgmma_f16, 2, 2, 128, NEAR_F32(16),
             .buffers = {NORMAL(8192, F16), NORMAL(8192, F16), OUT(16384)},
             .maps = {SQUARE(0, 6, 64), SQUARE(1, 6, 64)}),
    GEMM_128("corpus/cute90", cute_wgmma_bf16, 2, 2, 128, NEAR_F32(16),
             .buffers = {NORMAL(8192, BF16), NORMAL(8192, BF16), OUT(16384)},
             .maps = {SQUARE(0, 9, 64), SQUARE(1, 9, 64)}),
    GEMM_128("../../bench/sim/kernels", sgemm, 2, 2, 128, SAME,
             .buffers = {NORMAL(16384, F32), NORMAL(16384, F32), OUT(16384)}),
    GEMM_128("../../bench/sim/kernels", hgemm, 2, 2, 128, NEAR_F32(16),
             .buffers = {NORMAL(8192, F16), NORMAL(8192, F16), OUT(16384)}),
    ROW_N("ptx/grid", histogram, 4, 96, 1000, BITS(1000), OUT_ZERO(32)),
    ROW_N("ptx/grid", float_sum, 4, 96, 300, OF(300, F32, SMALL), OUT_ZERO(1)),
    ROW_N("ptx/grid", last_block, 8, 128, 1000, NORMAL(1000, F32), OUT(8), OUT_ZERO(1), OUT(1)),
    ROW("ptx/grid", look_back, 20, 64, OUT_ZERO(20), OUT(20 * 64)),
    ROW("ptx/grid", stages, 8, 64, OUT_ZERO(1), OUT(512), OUT(512)),
    ROW("ptx/"
        "grid",
        locked, 1, 32, OUT_ZERO(1), OUT_ZERO(1)),
    ROW("ptx/grid", named, 1, 128, OUT(256)),
    ROW("ptx/"
        "gri"
        "d",
        lanes, 1, 32, OUT(160)),
    ROW("ptx/"
        "gri"
        "d",
        neighbours, 8, 32, BITS(256), OUT(256)),
    ROW_N("ptx/async", pipeline, 1, 128, 1024, BITS(1024), OUT(1024)),
    ROW_N("ptx/"
          "async",
          zero_fill, 1, 32, 70, BITS(128), OUT(128)),
    {.file = "pt"
             "x/"
             "as"
             "yn"
             "c",
     .kernel = "ro"
               "w"
               "s",
     .grid = {1, 1, 1},
     .block = 256,
     .buffers = {NORMAL(1024, F32), OUT(1024)},
     .nints = 2,
     .ints = {1024, -1}},
    ROW("ptx/async", multicast, 8, 64, NORMAL(64, F32), OUT(512)),
    ROW_N("ptx/async", specialised, 1, 64, 1024, BITS(1024), OUT(1024)),
    ROW("ptx/tensor", mma_one, 1, 32, OF(128, F16, SMALL), OF(64, F16, SMALL), OUT(128)),
    ROW("ptx/tensor", wmma_one, 1, 32, OF(128, F16, SMALL), OF(128, F16, SMALL), OUT(256)),
    ROW("ptx/tensor", wgmma_one, 1, 128, OF(512, F16, SMALL), OF(64, F16, SMALL), OUT(512)),
};
#define CORPUS_ROWS (sizeof corpus / sizeof *corpus)

#endif
