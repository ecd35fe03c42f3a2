/* The family of convolutions: what it takes, and what becomes of a strategy's decisions. With
 * another path than warp groups' it writes what the family of products writes. What to choose for
 * its decisions: assets/openings/convolution.openings. */
#include "agent/expert/convolution/convolution.h"
#include "agent/expert/plan/step_facts.h"

enum {
    BOX_MOST = 256,        /* positions of a box of the copy engine */
    RESULTS_MOST = 128,    /* accumulators of a thread, those of promotion included */
    REGISTERS = 65536,     /* of an SM */
    REGISTERS_BESIDE = 40, /* of a thread, beside its accumulators */
    FILTERS_LEAST = 3,
    FILTERS_MOST = 8,
    CHAIN_MOST = 4096,    /* of the sum, in a tensor core */
    CHAIN_24_BITS = 1024, /* in tensor cores that keep 24 bits of a sum */
    ALIGNED = 1024,       /* where shared memory's swizzle begins */
    RESERVED = 1024,      /* of shared memory, for each block of an SM and for barriers */
};
#define COPY_MOST (INT64_C(3) << 30) /* bytes */

/* ---- claims ---- */

static bool match_step(const struct inst *in, struct arena *a, struct convolution *v) {
    struct contraction *c = arena_new_of(a, struct contraction);
    return con_match_all(in, a, c) && conv_match(c, v);
}

static bool convolution_claim(const struct briefing *b, const struct form *f, const bool *done,
                              size_t first, bool *take) {
    if (!b->gpu->has.wgmma || !family_contraction.claim(b, f, done, first, take))
        return false;
    struct arena *a = arena_new((size_t)16 << 20);
    struct convolution v;
    bool ok = match_step(form_part(f, take, a), a, &v);
    arena_free(a);
    return ok;
}

/* ---- decisions ---- */

static int64_t rounded_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

static size_t filter_bytes(const struct conv_config *g) {
    return (size_t)g->tile_m * 128;
}
static size_t segment_bytes(const struct conv_config *g) {
    return (size_t)(g->boxes * g->box) * 128;
}
static size_t result_bytes(const struct conv_config *g) {
    return (size_t)(g->tile_m * (g->tile_n * g->spread + 8)) * sizeof(float);
}
static size_t shared_bytes(const struct conv_config *g) {
    size_t ring = (size_t)g->stages * segment_bytes(g) + (size_t)g->filters * filter_bytes(g);
    if (g->spread > 1) /* phase by phase, while the ring is in use */
        return ring + result_bytes(g) + ALIGNED;
    return (ring > result_bytes(g) ? ring : result_bytes(g)) + ALIGNED;
}

/* Taps share a segment unless they lie further apart than a tile is long. */
static void shape_segment(const struct convolution *v, struct conv_config *g) {
    const struct conv_axis *last = conv_last(v);
    g->apart = last->reach > g->tile_n;
    g->taps = g->apart ? 1 : (int)last->taps;
    g->lines = (int)(g->apart ? v->taps.count : v->lines.count);
    int64_t positions = g->tile_n + (g->apart ? 0 : last->reach);
    g->boxes = (int)((positions + BOX_MOST - 1) / BOX_MOST);
    g->box = (int)rounded_up((positions + g->boxes - 1) / g->boxes, 8);
}

/* Blocks that the registers of an SM have room for. */
static int blocks_by_registers(const struct conv_config *g, int results) {
    return REGISTERS / (2 * g->threads) - REGISTERS_BESIDE >= results ? 2 : 1;
}

/* As many filter tiles on their way as leave room for another block; as fit, where that is none. */
static bool fill_shared(const struct sheet *sh, struct conv_config *g, int results) {
    size_t most = (size_t)sheet_shared_most(sh), half = (most + RESERVED) / 2 - 2 * RESERVED;
    for (g->blocks = blocks_by_registers(g, results); g->blocks > 0; g->blocks--)
        for (g->filters = FILTERS_MOST; g->filters >= FILTERS_LEAST; g->filters--)
            if ((g->shared = shared_bytes(g)) <= (g->blocks == 2 ? half : most - RESERVED))
                return true;
    return false;
}

static void promote_sums(const struct sheet *sh, const struct convolution *v,
                         struct conv_config *g) {
    int chain = sh->briefing->gpu->has.sum_bits > 24 ? CHAIN_MOST : CHAIN_24_BITS;
    g->promote = v->c->group[CON_K].count > chain ? chain / 2 / g->chunk : 0;
}

static bool fit_tile(const struct sheet *sh, const struct convolution *v, struct conv_config *g) {
    for (;;) {
        g->warpgroups = g->tile_m >= 128 ? 2 : 1;
        g->threads = 128 * g->warpgroups + 32;
        promote_sums(sh, v, g);
        shape_segment(v, g);
        int results = g->tile_m / 64 / g->warpgroups * g->tile_n / 2 * (g->promote ? 2 : 1);
        if (results <= RESULTS_MOST && fill_shared(sh, g, results))
            return true;
        if (results <= RESULTS_MOST && g->stages > 2)
            g->stages--;
        else if (g->tile_n > 64)
            g->tile_n /= 2;
        else if (g->tile_m > 64)
            g->tile_m /= 2;
        else
            return false;
    }
}

/* The copy of the input. */
static double copy_bytes(const struct convolution *v, const struct conv_config *g) {
    const struct contraction *c = v->c;
    return (double)v->images.count * (double)c->group[CON_BATCH].count *
           (double)con_value(c->in, conv_plane(v)) * (double)v->planes *
           (double)rounded_up(v->channels.count, 16 / g->element) * g->element;
}

static const char *why_not(const struct sheet *sh, const struct conv_config *g) {
    bool rounded = g->format == CON_TF32 || g->format == CON_F16 || g->format == CON_BF16;
    return sheet_decision(sh, "tensor-path", 0) != 2 ? "the strategy has no warp groups"
           : sheet_is_cute(sh) ? "there is no writer of CuTe for a packed input"
           : !rounded ? "neither the accuracy class nor a sum over its results lets tensor "
                        "cores round it"
                      : NULL;
}

bool conv_configure(const struct sheet *sh, const struct convolution *v, struct conv_config *out,
                    const char **why) {
    struct conv_config *g = out;
    *g = (struct conv_config){
        .format = con_choose_format(sh, v->c),
        .tile_m = (int)sheet_decision(sh, "tile-m", 64),
        .tile_n = (int)sheet_decision(sh, "tile-n", 128),
        .stages = (int)sheet_decision(sh, "stages", 2),
    };
    const char *refusal = why_not(sh, g);
    if (refusal) {
        *why = refusal;
        return false;
    }
    g->type = con_formats[g->format].tile;
    g->element = (int)dtype_info(g->type)->bytes;
    g->chunk = 128 / g->element;
    g->steps = v->channels.count >= g->chunk
                   ? 4
                   : (int)((v->channels.count * g->element + 31) / 32); /* 32 bytes each */
    g->spread = (int)conv_last(v)->spread;
    g->tile_m = g->tile_m < 64 ? 64 : g->tile_m;
    g->tile_n = g->tile_n < 64 ? 64 : g->tile_n;
    if (copy_bytes(v, g) > (double)COPY_MOST)
        *why = "a packed copy of the input would take more than 3 GiB";
    else if (!fit_tile(sh, v, g))
        *why = "no tile fits shared memory";
    else
        return true;
    return false;
}

/* ---- writing ---- */

/* What the text has as numbers of the filter, and whole groups. */
static void require_taps(struct conv_writer *x) {
    struct sheet *sh = x->w.sh;
    const struct convolution *v = x->v;
    const struct con_group *batch = &v->c->group[CON_BATCH], *sum = &v->c->group[CON_K];
    for (size_t i = 0; i < v->naxes; i++)
        for (size_t k = 0; k < sum->n; k++)
            if (sum->at[k].var == v->axes[i].tap.var && sum->at[k].extent->kind != EXPR_NUMBER) {
                str plan = sheet_plan(sh, sum->at[k].extent);
                sheet_require(sh, "%.*s == %lld", STR_ARG(plan), (long long)v->axes[i].taps);
            }
    for (size_t i = 0; i < batch->n; i++)
        if (batch->at[i].part == CON_QUOTIENT) {
            str all = sheet_plan(sh, batch->at[i].extent->args[0]),
                by = sheet_plan(sh, batch->at[i].divisor);
            sheet_require(sh, "%.*s %% %.*s == 0", STR_ARG(all), STR_ARG(by));
        }
}

static void require_shape(struct conv_writer *x) {
    struct sheet *sh = x->w.sh;
    const struct convolution *v = x->v;
    require_taps(x);
    str channels = sheet_plan(sh, v->channels.total), plane = sheet_plan(sh, conv_plane(v));
    bool fixed = v->channels.total->kind == EXPR_NUMBER;
    int chain = sh->briefing->gpu->has.sum_bits > 24 ? CHAIN_MOST : CHAIN_24_BITS;
    int64_t most = x->g.steps < 4 ? x->g.steps * 32 / x->g.element : INT32_MAX;
    if (!x->g.promote && chain / v->taps.count < most)
        most = chain / v->taps.count;
    if (!fixed)
        sheet_require(sh, "%.*s <= %lld", STR_ARG(channels), (long long)most);
    sheet_require(sh, "%.*s <= 1073741824", STR_ARG(plane));
}

static str output_name(const struct convolution *v) {
    return v->c->in->task->tensors[v->c->folds[0].statement->tensor].name;
}

static void note_tiles(struct conv_writer *x) {
    const struct conv_config *g = &x->g;
    struct sheet *sh = x->w.sh;
    sheet_note(sh,
               "convolution: %.*s: tiles of %d channels x %d positions, %d segments and %d filter "
               "tiles on their way; %s through wgmma",
               STR_ARG(output_name(x->v)), g->tile_m, g->tile_n, g->stages, g->filters,
               con_formats[g->format].note);
    const struct used all[] = {
        {"tensor-path", 2},   {"tile-m", g->tile_m}, {"tile-n", g->tile_n},
        {"tile-k", g->chunk}, {"stages", g->stages}, {"split-k", 1},
        {"pack", 1},          {"skip", 0},           {"raster", 1},
    };
    sheet_used(sh, all, sizeof all / sizeof *all);
}

static bool write_direct(struct conv_writer *x, const struct conv_direct *g) {
    struct sheet *sh = x->w.sh;
    const struct used all[] = {
        {"tensor-path", 0},
        {"tile-m", 32},
        {"tile-n", 32 * g->rows},
        {"tile-k", g->chunk},
        {"stages", 2},
        {"split-k", 1},
        {"pack", 0},
        {"skip", 0},
        {"raster", 1},
        {"swizzle", 0},
        {"warps", x->g.threads / 32},
    };
    sheet_note(sh,
               "convolution: %.*s: all channels of a result by one thread, %d places a warp, the "
               "input as it lies; fp32 multiply-adds",
               STR_ARG(output_name(x->v)), 32 * g->rows);
    sheet_used(sh, all, sizeof all / sizeof *all);
    return conv_write_direct(x, g);
}

static bool convolution_write(struct sheet *sh, const struct step *st) {
    struct conv_writer *x = arena_new_of(sh->mem, struct conv_writer);
    x->v = arena_new_of(sh->mem, struct convolution);
    bool matched = match_step(st->inst, sh->mem, x->v);
    BUG_IF(!matched);
    x->v->c->summed = st->summed;
    if (!sheet_reserve_words(sh, "contraction"))
        return false;
    x->w.sh = sh;
    x->w.step = st;
    x->w.c = x->v->c;
    struct conv_direct direct;
    if (sheet_decision(sh, "tensor-path", 0) == 0 && !sheet_is_cute(sh) &&
        conv_direct(x->v, (int)sheet_decision(sh, "tile-n", 128),
                    (int)sheet_decision(sh, "tile-k", 32), &direct)) {
        x->g.threads = 32 * (int)sheet_decision(sh, "warps", 4);
        require_taps(x);
        return write_direct(x, &direct);
    }
    const char *why = NULL;
    if (!conv_configure(sh, x->v, &x->g, &why)) {
        sheet_note(sh, "convolution: %.*s: as a product of elements that are gathered: %s",
                   STR_ARG(output_name(x->v)), why);
        return family_contraction.write(sh, st);
    }
    require_shape(x);
    note_tiles(x);
    return conv_pack_input(x) && conv_pack_filter(x) && conv_multiply(x);
}

/* ---- what openings ask ---- */

static bool convolution_facts(const struct briefing *b, const struct step *st,
                              struct step_facts *out) {
    struct arena *a = arena_new((size_t)16 << 20);
    struct convolution v;
    bool matched = match_step(st->inst, a, &v);
    if (matched) {
        const struct contraction *c = v.c;
        bool wide = con_type(c, v.input) == DTYPE_F32 || con_type(c, v.filter) == DTYPE_F32;
        out->value[STEP_ROUNDED] = !wide || c->in->task->accuracy != ACCURACY_FP32;
        out->value[STEP_OUT_CHANNELS] = c->group[CON_M].count;
        struct conv_direct direct;
        out->value[STEP_DIRECT] = conv_direct(&v, 128, 32, &direct);
        out->value[STEP_IN_CHANNELS] = v.channels.count;
        out->value[STEP_RUNS_PER_SM] = c->group[CON_BATCH].count * v.images.count *
                                       ((con_value(c->in, conv_plane(&v)) + 127) / 128) /
                                       b->gpu->sms;
    }
    arena_free(a);
    return matched;
}

const struct family family_convolution = {
    .name = "convolution",
    .workload = WORKLOAD_CONTRACTION,
    .cute = true,
    .facts = convolution_facts,
    .claim = convolution_claim,
    .write = convolution_write,
};
