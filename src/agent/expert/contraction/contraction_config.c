/* From decisions to numbers: what a strategy asks for, within what shape and hardware allow. */
#include "agent/expert/contraction/contraction.h"
#include "spec/pattern.h"

enum {
    RESULTS_MOST = 128,   /* accumulators of a thread, those of promotion included */
    CHAIN_MOST = 4096,    /* of k, in a tensor core or one chain of FMAs; longer: by halves */
    CHAIN_24_BITS = 1024, /* in tensor cores that keep 24 bits of a sum */
    CHAIN_EXACT = 32,     /* of k in a tensor core, class fp32 */
    CHAIN_SIMT = 512,
    PACK_MOST = 2,
    PARTS_MOST = 1 << 30, /* bytes */
};

/* ---- types ---- */

static enum dtype type_of(const struct contraction *c, size_t operand) {
    enum dtype t = c->in->task->tensors[c->operands[operand].read->ref].dtype;
    return t == DTYPE_F64 ? DTYPE_F32 : t; /* a let in memory */
}

/* 16-bit tiles where both operands are held exactly by the type; otherwise f32. */
static enum dtype tile_type(const struct contraction *c) {
    bool f16 = true, bf16 = true;
    for (size_t i = 0; i < c->noperands; i++) {
        enum dtype t = type_of(c, i);
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

static bool multiplies(const struct expr *e, size_t tensor) {
    struct factors f = {0};
    if (e->kind == EXPR_REDUCE && e->reduce->op == REDUCTION_SUM)
        pattern_factors(e->args[0], &f);
    for (size_t i = 0; i < f.n; i++)
        if (f.e[i]->kind == EXPR_READ && f.e[i]->ref == tensor)
            return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (multiplies(expr_part(e, i), tensor))
            return true;
    return false;
}

/* A sum of the product's own results. Where an element of an operand is rounded, a whole row of
 * results is off the same way, and the sum adds that up; the accuracy classes count such errors as
 * independent. */
static bool is_summed_again(const struct sheet *sh, const struct contraction *c) {
    const struct task *t = sh->briefing->inst->task;
    for (size_t i = 0; i < c->nfolds; i++)
        for (size_t k = 0; k < t->nstatements; k++)
            if (multiplies(t->statements[k].body, c->folds[i].statement->tensor))
                return true;
    return false;
}

static enum con_path choose_path(const struct sheet *sh, const struct contraction *c) {
    if (sheet_decision(sh, "tensor-path", 0) == 0)
        return CON_SIMT;
    switch (tile_type(c)) {
    case DTYPE_F16:
        return CON_F16;
    case DTYPE_BF16:
        return CON_BF16;
    default:
        if (c->in->task->accuracy != ACCURACY_FP32 && !is_summed_again(sh, c))
            return CON_TF32;
        return splits_well(sh, c) ? CON_TF32X3 : CON_SIMT;
    }
}

/* ---- tiles ---- */

/* A gathered operand runs along what its innermost index runs along. */
static bool runs_along_k(const struct contraction *c, const struct con_operand *o) {
    if (o->dense)
        return o->k_runs;
    const struct tensor *t = &c->in->task->tensors[o->read->ref];
    size_t last = o->read->nargs;
    while (last > 0 && expr_is_number(t->extent[last - 1], 1))
        last--;
    const struct con_group *side = &c->group[o->side];
    uint32_t uses = last ? expr_uses(o->read->args[last - 1]) : 0;
    return !(uses >> side->at[side->n - 1].var & 1);
}

static void set_tile(const struct contraction *c, struct con_config *g, size_t i) {
    const struct con_operand *o = &c->operands[i];
    struct con_tile *t = &g->tile[i];
    int side = o->side == CON_M ? g->tile_m : g->tile_n, piece = 16 / g->element;
    for (size_t k = 0; k < i; k++) /* one layout a side */
        if (c->operands[k].side == o->side)
            t->k_runs = g->tile[k].k_runs;
    if (g->warpgroup) {
        *t = (struct con_tile){.k_runs = true,
                               .vector = true,
                               .async = true,
                               .packed = g->parts > 1 || !contraction_is_direct(c, o),
                               .rows = side,
                               .row = g->tile_k,
                               .pitch = g->tile_k,
                               .type = t->type,
                               .bytes = (size_t)(side * g->parts) * 128};
        return;
    }
    t->rows = t->k_runs ? side : g->tile_k;
    t->row = t->k_runs ? g->tile_k : side;
    t->pitch = t->row + (g->swizzle ? 0 : t->k_runs || g->path == CON_SIMT ? piece : 8);
    t->bytes = (size_t)t->rows * (size_t)t->pitch * (size_t)g->element;
    if (g->cute && g->swizzle) /* by the address: tiles begin where the pattern does */
        t->bytes = (t->bytes + CON_SWIZZLED - 1) / CON_SWIZZLED * CON_SWIZZLED;
    if (t->packed) {
        t->vector = t->async = true;
        t->window = false;
        return;
    }
    bool plain = type_of(c, i) == t->type;
    const struct con_group *run = &c->group[o->k_runs ? CON_K : o->side];
    t->vector = plain && !c->taps && o->dense && (o->k_runs || o->side_runs) &&
                o->k_runs == t->k_runs && con_value(c->in, o->row) % piece == 0 &&
                run->count % piece == 0;
    t->async = t->vector || (plain && g->element == 4);
    t->window =
        !c->taps && t->async && !t->vector && !runs_along_k(c, o) && contraction_is_window(c, o);
}

/* Copies of all of a side's operands are not much more than the tensors themselves. */
static bool can_pack(const struct contraction *c, enum con_axis side) {
    for (size_t i = 0; i < c->noperands; i++) {
        const struct con_operand *o = &c->operands[i];
        struct con_group batch;
        if (o->side != side)
            continue;
        contraction_batch(c, o, &batch);
        double copy =
            (double)batch.count * (double)c->group[side].count * (double)c->group[CON_K].count;
        if ((contraction_is_window(c, o) && !runs_along_k(c, o)) ||
            copy > PACK_MOST * (double)c->in->tensors[o->read->ref].count)
            return false;
    }
    return true;
}

/* A side is copied when some operand of it could not be loaded by rows. */
static void choose_packed(const struct contraction *c, struct con_config *g, enum con_axis side) {
    bool awkward = false;
    for (size_t i = 0; i < c->noperands; i++)
        awkward |= c->operands[i].side == side && !g->tile[i].vector && !g->tile[i].window;
    for (size_t i = 0; i < c->noperands && awkward && can_pack(c, side); i++)
        if (c->operands[i].side == side) {
            g->tile[i].packed = g->tile[i].k_runs = true;
            set_tile(c, g, i);
        }
}

static void set_tiles(const struct contraction *c, struct con_config *g) {
    size_t stage = 0, results;
    for (size_t i = 0; i < c->noperands; i++) {
        g->tile[i] =
            (struct con_tile){.type = g->element == 4      ? DTYPE_F32
                                      : g->path == CON_F16 ? DTYPE_F16
                                                           : DTYPE_BF16,
                              .k_runs = g->path != CON_SIMT && runs_along_k(c, &c->operands[i])};
        set_tile(c, g, i);
    }
    if (g->pack) {
        choose_packed(c, g, CON_M);
        choose_packed(c, g, CON_N);
    }
    for (size_t i = 0; i < c->noperands; i++)
        stage += g->tile[i].bytes;
    results = c->nfolds * (size_t)g->tile_m * (size_t)(g->tile_n + 8) * sizeof(float);
    g->shared = (size_t)g->stages * stage;
    g->shared = g->shared > results ? g->shared : results;
    g->shared += contraction_alignment(g) > 128 ? contraction_alignment(g) : 0;
}

/* ---- warps and threads ---- */

static void set_warps(struct con_config *g, int warps) {
    int best = 1 << 30;
    BUG_IF(warps < 1);
    for (int m = 1, n = warps; n > 0; m *= 2, n /= 2) {
        int wm = g->tile_m / m, wn = g->tile_n / n;
        if (wm % 16 || wn % 16 || wm < 16 || wn < 16 || wm + wn >= best)
            continue;
        best = wm + wn;
        g->warps_m = m;
        g->warps_n = n;
    }
    if (best == 1 << 30)
        set_warps(g, warps / 2);
}

static int results_of(const struct contraction *c, const struct con_config *g) {
    int each = g->tile_m * g->tile_n / g->threads * (int)c->nfolds;
    return each * (g->promote ? 2 : 1);
}

static void set_threads(struct con_config *g, int warps) {
    if (g->warpgroup) {
        g->tile_m = g->tile_m < 64 ? 64 : g->tile_m;
        g->warpgroups = g->tile_m >= 128 ? 2 : 1;
        g->threads = 128 * g->warpgroups;
        return;
    }
    if (g->path != CON_SIMT) {
        set_warps(g, warps);
        g->threads = 32 * g->warps_m * g->warps_n;
        return;
    }
    while (warps > 1 && g->tile_m * g->tile_n / (32 * warps) < 16)
        warps /= 2;
    g->threads = 32 * warps;
}

/* A chain is as long as the instance's k only where the plan says so (contraction_chain). */
static int promotion(const struct contraction *c, const struct con_config *g) {
    bool exact = c->in->task->accuracy == ACCURACY_FP32 && g->path != CON_SIMT;
    int chain = g->path == CON_SIMT ? CHAIN_SIMT : exact ? CHAIN_EXACT : g->chain / 2;
    bool fixed = c->group[CON_K].total->kind == EXPR_NUMBER;
    if (c->group[CON_K].count <= (exact ? CHAIN_EXACT : g->chain) && (fixed || !exact))
        return 0;
    return chain > g->tile_k ? chain / g->tile_k : 1;
}

size_t contraction_alignment(const struct con_config *g) {
    return g->warpgroup ? 1024 : g->cute && g->swizzle ? CON_SWIZZLED : 128;
}

int64_t contraction_chain(const struct con_config *g) {
    return g->promote ? 0 : g->chain;
}

/* A side whose elements are loaded one by one has a thread for each of them. */
static bool is_too_wide(const struct contraction *c, const struct con_config *g) {
    for (size_t i = 0; i < c->noperands; i++) {
        int side = c->operands[i].side == CON_M ? g->tile_m : g->tile_n;
        if (!g->tile[i].vector && side > g->threads)
            return true;
    }
    return false;
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

void contraction_configure(const struct sheet *sh, const struct contraction *c,
                           struct con_config *out) {
    struct con_config *g = out;
    *g = (struct con_config){
        .path = choose_path(sh, c),
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
    g->pack = g->path != CON_SIMT && (c->taps || sheet_decision(sh, "pack", 0) != 0);
    g->warpgroup = sheet_decision(sh, "tensor-path", 0) == 2 && g->path != CON_SIMT && !c->taps &&
                   can_pack(c, CON_M) && can_pack(c, CON_N);
    if (g->warpgroup && g->path == CON_TF32X3)
        g->path = CON_BF16X6;
    g->chain =
        g->path == CON_SIMT || sh->briefing->gpu->has.sum_bits > 24 ? CHAIN_MOST : CHAIN_24_BITS;
    g->parts = g->path == CON_BF16X6 ? 3 : 1;
    g->element = g->path == CON_F16 || g->path == CON_BF16 || g->path == CON_BF16X6 ? 2 : 4;
    if (g->warpgroup)
        g->tile_k = 128 / g->element;
    for (;;) {
        g->promote = promotion(c, g);
        set_threads(g, warps);
        set_tiles(c, g);
        if (results_of(c, g) > RESULTS_MOST || is_too_wide(c, g)) {
            if (g->tile_n >= g->tile_m)
                g->tile_n /= 2;
            else
                g->tile_m /= 2;
        } else if (g->shared > most && g->stages > 2) {
            g->stages--;
        } else if (g->shared > most && g->tile_k > 16 && !g->warpgroup) {
            g->tile_k /= 2;
        } else if (g->shared > most) {
            g->tile_n /= 2;
        } else {
            break;
        }
    }
    g->split = split_of(sh, c, g->tile_k);
}
