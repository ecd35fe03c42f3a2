/* From decisions to numbers: what a strategy asks for, within what shape and hardware allow. */
#include "agent/expert/contraction/contraction.h"
#include "spec/pattern.h"

enum {
    RESULTS_MOST = 128,   /* accumulators of a thread, those of promotion included */
    PARTS_RESULTS = 192,  /* the same where one warp group multiplies parts */
    CHAIN_MOST = 4096,    /* of k, in a tensor core or one chain of FMAs; longer: by halves */
    CHAIN_24_BITS = 1024, /* in tensor cores that keep 24 bits of a sum */
    CHAIN_EXACT = 32,     /* of k in a tensor core, class fp32 */
    CHAIN_SIMT = 512,
    PARTS_SIDE = 128, /* of a tile: what a block of the kernel that makes parts has room for */
    PACK_MOST = 2,
    PARTS_MOST = 1 << 30,   /* bytes */
    ALIGNED = 128,          /* where shared memory begins */
    SHARED_OF_BLOCK = 1024, /* of an SM, that a block takes besides its own */
    SWIZZLED = 4096,        /* the longest pattern of a swizzle in CuTe: four rows of 256 floats */
};

/* ---- types ---- */

/* 16-bit tiles where both operands are held exactly by the type; otherwise f32. */
static enum dtype tile_type(const struct contraction *c) {
    bool f16 = true, bf16 = true;
    for (size_t i = 0; i < c->noperands; i++) {
        enum dtype t = con_type(c, &c->operands[i]);
        bool small = t == DTYPE_I8 || t == DTYPE_U8 || t == DTYPE_BOOL;
        f16 &= small || t == DTYPE_F16;
        bf16 &= small || t == DTYPE_BF16;
    }
    return f16 ? DTYPE_F16 : bf16 ? DTYPE_BF16 : DTYPE_F32;
}

/* An operand that the task computes may be of any magnitude beside the other's smallest: weights of
 * a softmax times subnormal values. Numbers split into TF32 parts lose theirs there, which class
 * fp32 notices. Products of two inputs, both small, vanish either way. */
static bool splits_well(const struct sheet *sh, const struct contraction *c) {
    const struct task *t = sh->briefing->inst->task;
    for (size_t i = 0; i < c->noperands; i++) {
        size_t tensor = c->operands[i].read->ref;
        if (tensor >= t->ntensors || t->tensors[tensor].role == TENSOR_LET)
            return false;
    }
    return true;
}

enum con_format con_choose_format(const struct sheet *sh, const struct contraction *c) {
    if (sheet_decision(sh, "tensor-path", 0) == 0)
        return CON_FP32;
    switch (tile_type(c)) {
    case DTYPE_F16:
        return CON_F16;
    case DTYPE_BF16:
        return CON_BF16;
    default:
        if (c->in->task->accuracy != ACCURACY_FP32 && !c->summed)
            return CON_TF32;
        return splits_well(sh, c) ? CON_TF32X3 : CON_FP32;
    }
}

/* ---- pieces ---- */

/* Of those in the list that fit, the one with the least rank. */
#define RETURN_FIRST(list, ...)                                                                    \
    size_t first = SIZE_MAX;                                                                       \
    for (size_t i = 0; (list)[i]; i++)                                                             \
        if ((first == SIZE_MAX || (list)[i]->rank < (list)[first]->rank) &&                        \
            (!(list)[i]->fits || (list)[i]->fits(__VA_ARGS__)))                                    \
            first = i;                                                                             \
    BUG_IF(first == SIZE_MAX);                                                                     \
    return (list)[first];

static const struct con_source *choose_source(const struct con_config *g, size_t operand) {
    RETURN_FIRST(con_sources, g, operand)
}
static const struct con_math *choose_math(const struct con_config *g) {
    RETURN_FIRST(con_maths, g)
}
static const struct con_sink *choose_sink(const struct con_config *g) {
    RETURN_FIRST(con_sinks, g)
}
static const struct con_schedule *choose_schedule(const struct con_config *g) {
    RETURN_FIRST(con_schedules, g)
}

#define FAIL_IF_SAME_RANK(kind)                                                                    \
    for (size_t i = 0; con_##kind##s[i]; i++)                                                      \
        for (size_t k = 0; k < i; k++)                                                             \
            if (con_##kind##s[i]->rank == con_##kind##s[k]->rank)                                  \
                return err_set(err, ERR_ENV, "products: two pieces " #kind "_*.c have rank %d",    \
                               con_##kind##s[i]->rank);

bool con_check_ranks(struct err *err) {
    FAIL_IF_SAME_RANK(source)
    FAIL_IF_SAME_RANK(math)
    FAIL_IF_SAME_RANK(sink)
    FAIL_IF_SAME_RANK(schedule)
    return true;
}

/* ---- tiles ---- */

void con_lay_rows(const struct con_config *g, int side, struct con_tile *t) {
    int piece = 16 / g->element;
    t->rows = t->k_contiguous ? side : g->tile_k;
    t->row = t->k_contiguous ? g->tile_k : side;
    t->pitch = t->row + (g->swizzle ? 0 : t->k_contiguous || g->format == CON_FP32 ? piece : 8);
    t->bytes = (size_t)t->rows * (size_t)t->pitch * (size_t)g->element;
    if (g->cute && g->swizzle) /* by the address: tiles begin where the pattern does */
        t->bytes = (t->bytes + g->alignment - 1) / g->alignment * g->alignment;
}

static void set_tile(const struct contraction *c, struct con_config *g, size_t i) {
    enum con_axis side = c->operands[i].side;
    struct con_tile *t = &g->tile[i];
    for (size_t k = 0; k < i; k++) /* one layout a side */
        if (c->operands[k].side == side)
            t->k_contiguous = g->tile[k].k_contiguous;
    g->math->lay_out(g, side == CON_M ? g->tile_m : g->tile_n, t);
    t->source = choose_source(g, i);
}

/* Copies of all of a side's operands are not much more than the tensors themselves. */
static bool can_pack(const struct contraction *c, enum con_axis side) {
    for (size_t i = 0; i < c->noperands; i++) {
        const struct con_operand *o = &c->operands[i];
        struct con_group batch;
        if (o->side != side)
            continue;
        con_batch(c, o, &batch);
        double copy =
            (double)batch.count * (double)c->group[side].count * (double)c->group[CON_K].count;
        if ((con_is_window(c, o) && !con_along_k(c, o)) ||
            copy > PACK_MOST * (double)c->in->tensors[o->read->ref].count)
            return false;
    }
    return true;
}

/* A side is copied when some operand of it could not be loaded by rows. */
static void choose_packed(const struct contraction *c, struct con_config *g, enum con_axis side) {
    bool awkward = false;
    for (size_t i = 0; i < c->noperands; i++)
        awkward |= c->operands[i].side == side && g->tile[i].source->awkward;
    for (size_t i = 0; i < c->noperands && awkward && can_pack(c, side); i++)
        if (c->operands[i].side == side) {
            g->tile[i].packed = g->tile[i].k_contiguous = true;
            set_tile(c, g, i);
        }
}

/* Boxes of 64 elements along the side: all of a side's operands lie so. */
static bool is_side_across(const struct contraction *c, const struct con_config *g,
                           enum con_axis side) {
    bool across = (side == CON_M ? g->tile_m : g->tile_n) % 64 == 0;
    for (size_t i = 0; i < c->noperands; i++)
        if (c->operands[i].side == side)
            across &=
                con_type(c, &c->operands[i]) == g->type && con_is_direct_across(c, &c->operands[i]);
    return across;
}

/* For boxes, by rows along k or along the side, as the operand lies or from a copy. */
static struct con_tile box_tile(const struct contraction *c, const struct con_config *g,
                                const struct con_operand *o) {
    bool whole = con_formats[g->format].parts == 1 && con_type(c, o) == g->type;
    bool across = whole && is_side_across(c, g, o->side);
    return (struct con_tile){.k_contiguous = !across,
                             .packed = !across && !(whole && con_is_direct(c, o))};
}

static void set_tiles(const struct contraction *c, struct con_config *g) {
    size_t stage = 0, results = g->sink->shared(g);
    for (size_t i = 0; i < c->noperands; i++) {
        const struct con_operand *o = &c->operands[i];
        g->tile[i] = g->math->boxes ? box_tile(c, g, o)
                                    : (struct con_tile){.k_contiguous = g->format != CON_FP32 &&
                                                                        con_along_k(c, o)};
        set_tile(c, g, i);
    }
    if (g->pack && !g->math->boxes) {
        choose_packed(c, g, CON_M);
        choose_packed(c, g, CON_N);
    }
    for (int side = CON_M; side <= CON_N; side++)
        for (size_t i = 0; i < c->noperands; i++)
            if ((int)c->operands[i].side == side) {
                g->tile[i].at = stage;
                stage += g->tile[i].bytes;
            }
    g->shared = (size_t)g->stages * stage;
    g->shared = g->shared > results ? g->shared : results;
    g->shared += g->alignment > ALIGNED ? g->alignment : 0;
}

/* ---- threads ---- */

/* A chain is as long as the instance's k only where the plan says so (kernel.c). */
static int promotion(const struct contraction *c, const struct con_config *g) {
    if (g->format == CON_F16X3)
        return 1; /* every tile of k is scaled by itself */
    bool exact = c->in->task->accuracy == ACCURACY_FP32 && g->format != CON_FP32;
    int chain = g->format == CON_FP32 ? CHAIN_SIMT : exact ? CHAIN_EXACT : g->chain / 2;
    bool fixed = c->group[CON_K].total->kind == EXPR_NUMBER;
    if (c->group[CON_K].count <= (exact ? CHAIN_EXACT : g->chain) && (fixed || !exact))
        return 0;
    return chain > g->tile_k ? chain / g->tile_k : 1;
}

/* A side whose elements are loaded one by one has a thread for each of them. */
static bool is_too_wide(const struct contraction *c, const struct con_config *g) {
    for (size_t i = 0; i < c->noperands; i++) {
        int side = c->operands[i].side == CON_M ? g->tile_m : g->tile_n;
        if (g->tile[i].source->one_by_one && side > g->threads)
            return true;
    }
    return false;
}

/* Of an SM at once. Two where warps multiply whole tiles that are loaded by rows: one block's
 * results are stored while the other's are summed, and the registers suffice. */
static int blocks_of(const struct sheet *sh, const struct contraction *c,
                     const struct con_config *g) {
    bool rows = true;
    for (size_t i = 0; i < c->noperands; i++)
        rows &= !g->tile[i].source->one_by_one;
    size_t all = sh->briefing->gpu->shared_sm, each = g->shared + SHARED_OF_BLOCK;
    bool fits = g->tile_m * g->tile_n / g->threads * (int)c->nfolds <= RESULTS_MOST / 2;
    return g->tensor_path == 1 && !g->promote && rows && fits && 2 * each <= all ? 2 : 1;
}

/* No more parts than tiles of k, nor more memory for them than a device has to spare. */
static int split_of(const struct sheet *sh, const struct contraction *c, int tile_k) {
    int split = (int)sheet_decision(sh, "split-k", 1);
    double results = (double)c->group[CON_BATCH].count * (double)c->group[CON_M].count *
                     (double)c->group[CON_N].count * (double)c->nfolds;
    while (split > 1 && (results * split * sizeof(float) > PARTS_MOST ||
                         (int64_t)(split / 2) * tile_k >= c->group[CON_K].count))
        split /= 2;
    return split;
}

static void choose_format_and_math(const struct sheet *sh, const struct contraction *c,
                                   struct con_config *g) {
    g->format = con_choose_format(sh, c);
    g->tensor_path = g->format == CON_FP32 ? 0
                     : sheet_decision(sh, "tensor-path", 0) == 2 && !c->taps &&
                             can_pack(c, CON_M) && can_pack(c, CON_N)
                         ? 2
                         : 1;
    if (g->tensor_path == 2 && g->format == CON_TF32X3)
        g->format = sheet_decision(sh, "split-parts", 3) == 2 && !con_refuse_parts(g) ? CON_F16X3
                                                                                      : CON_BF16X6;
    g->pack = g->format != CON_FP32 && (c->taps || sheet_decision(sh, "pack", 0) != 0);
    g->chain =
        g->format == CON_FP32 || sh->briefing->gpu->has.sum_bits > 24 ? CHAIN_MOST : CHAIN_24_BITS;
    g->type = con_formats[g->format].tile;
    g->element = (int)dtype_info(g->type)->bytes;
    g->math = choose_math(g);
    g->alignment = g->math->boxes ? 1024 : g->cute && g->swizzle ? SWIZZLED : ALIGNED;
}

/* For a thread's registers; in parts there are two accumulators beside the sum. */
static bool has_too_many_results(const struct contraction *c, const struct con_config *g) {
    int results = g->tile_m * g->tile_n / g->threads * (int)c->nfolds;
    if (g->format == CON_F16X3)
        return 3 * results > PARTS_RESULTS || g->tile_m > PARTS_SIDE || g->tile_n > PARTS_SIDE;
    return results * (g->promote ? 2 : 1) > RESULTS_MOST;
}

void con_configure(const struct sheet *sh, const struct contraction *c, struct con_config *out) {
    struct con_config *g = out;
    *g = (struct con_config){
        .sh = sh,
        .c = c,
        .tile_m = (int)sheet_decision(sh, "tile-m", 128),
        .tile_n = (int)sheet_decision(sh, "tile-n", 128),
        .tile_k = (int)sheet_decision(sh, "tile-k", 32),
        .stages = (int)sheet_decision(sh, "stages", 2),
        .raster = (int)sheet_decision(sh, "raster", 1),
        .swizzle = sheet_decision(sh, "swizzle", 0) != 0,
        .cute = sheet_is_cute(sh),
    };
    int warps = (int)sheet_decision(sh, "warps", 8);
    size_t most = (size_t)sheet_shared_most(sh);
    choose_format_and_math(sh, c, g);
    for (;;) {
        g->math->shape(g, warps);
        g->promote = promotion(c, g);
        g->split = split_of(sh, c, g->tile_k);
        g->sink = choose_sink(g);
        g->schedule = choose_schedule(g);
        set_tiles(c, g);
        if (has_too_many_results(c, g) || is_too_wide(c, g)) {
            if (g->tile_n >= g->tile_m)
                g->tile_n /= 2;
            else
                g->tile_m /= 2;
        } else if (g->shared > most && g->stages > 2) {
            g->stages--;
        } else if (g->shared > most && g->tile_k > 16 && !g->math->boxes) {
            g->tile_k /= 2;
        } else if (g->shared > most) {
            g->tile_n /= 2;
        } else {
            break;
        }
    }
    g->blocks = blocks_of(sh, c, g);
}
