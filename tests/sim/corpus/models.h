/* Plain models of the corpus's whole kernels: what they should compute, in double precision and in
 * no particular order. Where one is short enough to be believed, the simulator is held to it on any
 * machine. */
#ifndef CORPUS_MODELS_H
#define CORPUS_MODELS_H

#include "corpus.h"

/* The inputs of a row as they were before the launch, and where the results should go. */
struct model_case {
    const struct corpus_row *row;
    const uint32_t *const *in;
    double *want; /* one a number of the result, in the order of the outputs */
    int n;        /* the kernel's first integer */
};

static inline double model_float(uint32_t bits, int ebits, int mbits) {
    int bias = (1 << (ebits - 1)) - 1, e = (int)(bits >> mbits & ((1u << ebits) - 1));
    double f = bits & ((1u << mbits) - 1);
    double v = e ? ldexp(f + ldexp(1, mbits), e - bias - mbits) : ldexp(f, 1 - bias - mbits);
    return bits >> (ebits + mbits) & 1 ? -v : v;
}
/* Number i of an input of a type; integers are words, of int8 the bytes. */
static inline double model_at(const struct model_case *c, unsigned b, int i) {
    const uint32_t *w = c->in[b];
    uint64_t d;
    double v;
    switch (c->row->buffers[b].type) {
    case HW_F16:
        return model_float(w[i / 2] >> i % 2 * 16 & 0xffff, 5, 10);
    case HW_BF16:
        return model_float(w[i / 2] >> i % 2 * 16 & 0xffff, 8, 7);
    case HW_TF32: /* the bits that a tensor core reads */
        return model_float(w[i] & ~0x1fffu, 8, 23);
    case HW_F64:
        d = (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
        memcpy(&v, &d, 8);
        return v;
    case HW_INT:
        return (int8_t)(w[i / 4] >> i % 4 * 8);
    default:
        return model_float(w[i], 8, 23);
    }
}

static inline void model_axpy(const struct model_case *c) {
    for (int i = 0; i < c->n; i++)
        c->want[i] = 1.25 * model_at(c, 0, i) + model_at(c, 1, i);
}
static inline void model_gelu(const struct model_case *c) {
    for (int i = 0; i < c->n; i++) {
        double v = model_at(c, 0, i);
        c->want[i] = 0.5 * v * (1 + erf(v * 0.7071067811865476));
    }
}
static inline void model_silu(const struct model_case *c) {
    for (int i = 0; i < c->n; i++)
        c->want[i] = model_at(c, 0, i) / (1 + exp(-model_at(c, 0, i)));
}
static inline void model_functions(const struct model_case *c) {
    for (int i = 0; i < c->n; i++) {
        double v = fabs(model_at(c, 0, i)) + 0.125;
        c->want[i] = log(v) + sqrt(v) * exp(-v) + pow(v, 0.75) + tanh(v) + sin(v) + cos(v);
    }
}
static inline void model_sums(const struct model_case *c) {
    int n = c->n ? c->n : (int)c->row->block;
    for (uint32_t r = 0; r < c->row->grid[0]; r++)
        for (int i = 0; i < n; i++)
            c->want[r] += model_at(c, 0, (int)r * n + i);
}
static inline void model_sum_integers(const struct model_case *c) {
    uint32_t sum = 0;
    for (int i = 0; i < c->n; i++)
        sum += c->in[0][i];
    c->want[0] = sum;
}
static inline void model_squares(const struct model_case *c) {
    for (int i = 0; i < c->n; i++)
        c->want[0] += model_at(c, 0, i) * model_at(c, 0, i);
}
static inline void model_argmax(const struct model_case *c) {
    for (uint32_t r = 0; r < c->row->grid[0]; r++)
        for (int i = 1; i < c->n; i++) {
            int best = (int)r * c->n + (int)c->want[r];
            c->want[r] = model_at(c, 0, (int)r * c->n + i) > model_at(c, 0, best) ? i : c->want[r];
        }
}
static inline void model_softmax(const struct model_case *c) {
    for (uint32_t r = 0; r < c->row->grid[0]; r++) {
        double sum = 0;
        for (int i = 0; i < c->n; i++)
            sum += exp(model_at(c, 0, (int)r * c->n + i));
        for (int i = 0; i < c->n; i++)
            c->want[(int)r * c->n + i] = exp(model_at(c, 0, (int)r * c->n + i)) / sum;
    }
}
static inline void model_norm(const struct model_case *c) {
    bool rms = c->row->buffers[0].type == HW_F16;
    for (int r = 0; r < (int)c->row->grid[0]; r++) {
        double mean = 0, square = 0;
        for (int i = 0; i < c->n && !rms; i++)
            mean += model_at(c, 0, r * c->n + i) / c->n;
        for (int i = 0; i < c->n; i++)
            square += pow(model_at(c, 0, r * c->n + i) - mean, 2) / c->n;
        for (int i = 0; i < c->n; i++)
            c->want[r * c->n + i] = (model_at(c, 0, r * c->n + i) - mean) / sqrt(square + 1e-5);
    }
}
static inline void model_cluster_norm(const struct model_case *c) {
    for (int r = 0; r < 2; r++) {
        double sum = 0;
        for (int i = 0; i < 256; i++)
            sum += fabs(model_at(c, 0, r * 256 + i));
        for (int i = 0; i < 256; i++)
            c->want[r * 256 + i] = model_at(c, 0, r * 256 + i) / sum;
    }
}
static inline void model_cooperative_mean(const struct model_case *c) {
    double mean = 0;
    for (int i = 0; i < 512; i++) {
        c->want[i / 64] += model_at(c, 0, i);
        mean += model_at(c, 0, i) / 512;
    }
    int counts = c->row->buffers[3].words != 0; /* a count between them, which is no float */
    c->want[8] = NAN;
    for (int i = 0; i < 512; i++)
        c->want[8 + counts + i] = model_at(c, 0, i) - mean;
}
static inline void model_scan_warp(const struct model_case *c) {
    uint32_t sum = 0;
    for (int i = 0; i < 256; i++) {
        sum = i % 32 ? sum + c->in[0][i] : c->in[0][i];
        c->want[i] = sum;
    }
}
static inline void model_scan_block(const struct model_case *c) {
    for (int i = 0; i < 512; i++)
        c->want[i] = model_at(c, 0, i) + (i % 256 ? c->want[i - 1] : 0);
}
static inline void model_scan_shared(const struct model_case *c) {
    uint32_t sum = 0;
    for (int i = 0; i < 256; sum += c->in[0][i++])
        c->want[i] = sum;
}
static inline void model_transpose(const struct model_case *c) {
    for (int i = 0; i < c->n * c->n; i++)
        c->want[i % c->n * c->n + i / c->n] = model_at(c, 0, i);
}
static inline double model_pixel(const struct model_case *c, int r, int k) {
    return r < 0 || k < 0 || r >= c->n || k >= c->n ? 0 : model_at(c, 0, r * c->n + k);
}
static inline void model_stencil(const struct model_case *c) {
    for (int r = 0; r < c->n; r++)
        for (int k = 0; k < c->n; k++)
            c->want[r * c->n + k] = 0.5 * model_pixel(c, r, k) +
                                    0.125 * (model_pixel(c, r - 1, k) + model_pixel(c, r + 1, k) +
                                             model_pixel(c, r, k - 1) + model_pixel(c, r, k + 1));
}
static inline void model_convolve(const struct model_case *c) {
    for (int i = 0; i < 512; i++)
        for (int k = 0; k < 7; k++)
            if (i + k - 3 >= 0 && i + k - 3 < c->n)
                c->want[i] += model_at(c, 0, i + k - 3) * model_at(c, 1, k);
}
static inline int model_below(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static inline void model_sort(const struct model_case *c) {
    for (int i = 0; i < 512; i++)
        c->want[i] = c->in[0][i];
    qsort(c->want, 256, sizeof *c->want, model_below);
    qsort(c->want + 256, 256, sizeof *c->want, model_below);
}
static inline void model_gather(const struct model_case *c) {
    for (int i = 0; i < 512; i++)
        c->want[i] = model_at(c, 0, (int)(c->in[1][i / 64] & 15) * 64 + i % 64);
}
static inline void model_cross_entropy(const struct model_case *c) {
    for (int r = 0; r < 8; r++) {
        double sum = 0;
        for (int i = 0; i < c->n; i++)
            sum += exp(model_at(c, 0, r * c->n + i));
        c->want[r] = log(sum) - model_at(c, 0, r * c->n + (int)(c->in[1][r] % (uint32_t)c->n));
    }
}
static inline void model_histogram(const struct model_case *c) {
    for (int i = 0; i < c->n; i++)
        c->want[c->in[0][i] & 31]++;
}
static inline void model_look_back(const struct model_case *c) {
    for (int b = 0; b < 20; b++) {
        c->want[b] = 2 | (b + 1) * (b + 2) / 2 << 2;
        for (int t = 0; t < 64; t++)
            c->want[20 + b * 64 + t] = b * (b + 1) / 2;
    }
}

/* C = A B, or A B^T. */
static inline void model_product(const struct model_case *c, bool transposed) {
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < c->n; j++)
            for (int k = 0; k < c->n; k++)
                c->want[i * c->n + j] += model_at(c, 0, i * c->n + k) *
                                         model_at(c, 1, transposed ? j * c->n + k : k * c->n + j);
}
static inline void model_gemm(const struct model_case *c) {
    model_product(c, false);
}
static inline void model_gemm_t(const struct model_case *c) {
    model_product(c, true);
}
static inline void model_heads(const struct model_case *c, int d) {
    for (int q = 0; q < 64; q++) {
        double sum = 0, p[64];
        for (int k = 0; k < 64; k++) {
            double s = 0;
            for (int i = 0; i < d; i++)
                s += model_at(c, 0, q * d + i) * model_at(c, 1, k * d + i);
            sum += p[k] = exp(s / sqrt(d));
        }
        for (int k = 0; k < 64; k++)
            for (int i = 0; i < d; i++)
                c->want[q * d + i] += p[k] / sum * model_at(c, 2, k * d + i);
    }
}
static inline void model_attention_32(const struct model_case *c) {
    model_heads(c, 32);
}
static inline void model_attention_64(const struct model_case *c) {
    model_heads(c, 64);
}

/* Results are words, signed words, or floats; `allow` is relative for those above 1. */
enum model_result { RESULT_U32, RESULT_S32, RESULT_F32, RESULT_F16, RESULT_F64 };
static const struct {
    const char *kernel;
    void (*run)(const struct model_case *);
    enum model_result result;
    double allow;
} models[] = {
    {"axpy", model_axpy, RESULT_F32, 1e-6},
    {"gelu_erf", model_gelu, RESULT_F32, 1e-6},
    {"silu_fast", model_silu, RESULT_F32, 2e-6},
    {"functions_whole", model_functions, RESULT_F32, 2e-6},
    {"sum_rows", model_sums, RESULT_F32, 2e-5},
    {"sum_tree", model_sums, RESULT_F32, 2e-5},
    {"sum_integers", model_sum_integers, RESULT_U32, 0},
    {"sum_doubles", model_squares, RESULT_F64, 1e-14},
    {"argmax", model_argmax, RESULT_S32, 0},
    {"softmax", model_softmax, RESULT_F32, 1e-6},
    {"layer_norm", model_norm, RESULT_F32, 1e-5},
    {"rms_norm_half", model_norm, RESULT_F16, 1e-3},
    {"cluster_norm", model_cluster_norm, RESULT_F32, 1e-6},
    {"cooperative_mean", model_cooperative_mean, RESULT_F32, 1e-5},
    {"grid_mean", model_cooperative_mean, RESULT_F32, 1e-5},
    {"scan_warp", model_scan_warp, RESULT_U32, 0},
    {"scan_block", model_scan_block, RESULT_F32, 1e-5},
    {"scan_shared", model_scan_shared, RESULT_U32, 0},
    {"transpose", model_transpose, RESULT_F32, 0},
    {"stencil", model_stencil, RESULT_F32, 1e-6},
    {"convolve", model_convolve, RESULT_F32, 1e-5},
    {"sort_block", model_sort, RESULT_U32, 0},
    {"gather_embedding", model_gather, RESULT_F32, 0},
    {"cross_entropy", model_cross_entropy, RESULT_F32, 2e-6},
    {"gemm_naive", model_gemm, RESULT_F32, 1e-5},
    {"gemm_tiled", model_gemm, RESULT_F32, 1e-5},
    {"gemm_double", model_gemm, RESULT_F64, 1e-13},
    {"gemm_half2", model_gemm_t, RESULT_F16, 4e-2},
    {"gemm_dp4a", model_gemm_t, RESULT_S32, 0},
    {"gemm_imma", model_gemm_t, RESULT_S32, 0},
    {"gemm_tf32", model_gemm_t, RESULT_F32, 2e-5},
    {"gemm_split_k", model_gemm, RESULT_F32, 0},
    {"attention_online", model_attention_32, RESULT_F32, 1e-5},
    {"attention_mma", model_attention_64, RESULT_F32, 2e-3},
    {"cute_f16", model_gemm_t, RESULT_F32, 2e-5},
    {"cute_bf16", model_gemm_t, RESULT_F32, 2e-5},
    {"cute_wgmma_f16", model_gemm_t, RESULT_F32, 2e-5},
    {"cute_wgmma_bf16", model_gemm_t, RESULT_F32, 2e-5},
    {"sgemm", model_gemm, RESULT_F32, 2e-5},
    {"hgemm", model_gemm, RESULT_F32, 2e-5},
    {"histogram", model_histogram, RESULT_U32, 0},
    {"look_back", model_look_back, RESULT_U32, 0},
};

static inline double model_result(enum model_result t, const uint32_t *words, uint32_t i) {
    double d;
    switch (t) {
    case RESULT_U32:
        return words[i];
    case RESULT_S32:
        return (int32_t)words[i];
    case RESULT_F16:
        return model_float(words[i / 2] >> i % 2 * 16 & 0xffff, 5, 10);
    case RESULT_F64:
        memcpy(&d, words + (size_t)2 * i, 8);
        return d;
    default:
        return model_float(words[i], 8, 23);
    }
}

#endif
