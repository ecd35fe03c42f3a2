/* How a group's kernels are built: what the strategy says, as far as shape and hardware allow.
 *
 * What is given up is said in the notes of the file. Chains of additions stay below CHAIN batches
 * at the shapes the plan admits, whatever was decided. */
#include "agent/expert/plan/step_facts.h"
#include "agent/expert/rows/rows.h"
#include <math.h>

enum { CHAIN = 4096, REGISTERS = 64, WARP = 32, BLOCK_TERMS = 1 << 20, WAVES = 32 };
#define STATIC_BYTES INT64_C(49152) /* of shared memory, without asking */

static int64_t at_least_power(int64_t n) {
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}
static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
static int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

/* ---- packs ---- */

static int64_t suffix_columns(const struct rows_group *g, size_t n) {
    int64_t p = 1;
    for (size_t i = 0; i < n; i++)
        p *= rows_extent(g, g->nkept + g->ncols - 1 - i);
    return p;
}

static void require_multiple(struct rows *r, size_t from, size_t to) {
    str plan = sheet_plan(r->sh, rows_product(r, from, to));
    sheet_require_for(r->sh, "Columns are read as whole vectors.", "%.*s %% %lld == 0",
                      STR_ARG(plan), (long long)r->shape.vec);
}

/* At the actual shape, whose columns are `own`, and at those that must be served too. */
static bool is_multiple(struct rows *r, size_t from, size_t to, int64_t own, int64_t by) {
    const struct inst *in = r->g.in;
    return own % by == 0 && (!in->nalso || inst_divides(in, rows_product(r, from, to), by));
}

static void settle_outer_pack(struct rows *r, int64_t want) {
    size_t lane = (size_t)rows_lane_var(&r->g);
    while (want > 1 && !is_multiple(r, lane, lane + 1, rows_extent(&r->g, lane), want))
        want /= 2;
    r->shape.vec = r->g.ragged ? 1 : want;
    if (r->shape.vec > 1)
        require_multiple(r, lane, lane + 1);
}

static void settle_inner_pack(struct rows *r, int64_t want) {
    const struct rows_group *g = &r->g;
    size_t end = g->nkept + g->ncols;
    bool flat = rows_has_flat(r);
    for (r->shape.vec = g->ragged ? 1 : want; r->shape.vec > 1; r->shape.vec /= 2) {
        for (size_t n = 1; n <= g->ncols; n++)
            if (is_multiple(r, end - n, end, suffix_columns(g, n), r->shape.vec)) {
                r->shape.suffix = n;
                require_multiple(r, end - n, end);
                return;
            }
        if (flat) {
            r->shape.shifted = true;
            return;
        }
    }
}

/* ---- threads ---- */

static int64_t auto_team(const struct rows *r) {
    int64_t each = rows_columns(&r->g) / (r->shape.vec * 8);
    return each <= WARP ? WARP : clamp(at_least_power(each), 128, 1024);
}

static int64_t auto_split(const struct rows *r) {
    int64_t rows = rows_count(&r->g), sms = r->sh->briefing->gpu->sms;
    int64_t blocks = r->shape.outer ? ceil_div(rows, WARP * r->shape.vec) / 8 + 1 : rows;
    return blocks >= 2 * sms ? 1 : at_least_power(ceil_div(8 * sms, blocks));
}

static int64_t terms_of_chain(const struct rows *r) {
    const struct rows_shape *s = &r->shape;
    return CHAIN * s->team * s->cluster * s->split * (s->outer ? s->items : s->vec);
}

/* Columns the kernel may be given, as far as chains and its integers go. */
static int64_t most_columns(const struct rows *r) {
    int64_t most = terms_of_chain(r), ints = INT64_C(1) << 30;
    return r->short_cols && most > ints ? ints : most;
}

static void settle_outer_threads(struct rows *r) {
    struct rows_shape *s = &r->shape;
    int64_t words = 1;
    for (size_t l = 0; l < r->nlevels; l++)
        words = clamp((int64_t)rows_part_words(r, l), words, 1 << 10);
    while (s->block > WARP && s->block * words * 4 > STATIC_BYTES)
        s->block /= 2;
    s->team = clamp(sheet_decision(r->sh, "row-threads", 8), 1, clamp(s->block / WARP, 1, WARP));
    s->team = clamp(s->team, 1, at_least_power(rows_columns(&r->g)));
    s->cluster = 1;
}

static void settle_inner_threads(struct rows *r) {
    struct rows_shape *s = &r->shape;
    bool whole_block = s->split > 1 || r->g.nkept == 0;
    s->team = sheet_decision(r->sh, "row-threads", auto_team(r));
    s->cluster = r->g.ragged || s->split > 1 ? 1 : sheet_decision(r->sh, "row-cluster", 1);
    int64_t packs = at_least_power(ceil_div(rows_columns(&r->g), s->vec));
    if (whole_block && s->team <= WARP)
        s->team = s->block;
    else if (s->cluster > 1 && s->team <= WARP)
        s->team = 2 * WARP;
    s->team = clamp(s->team, 1, clamp(packs, 1, 1024)); /* no more than there is work for */
    while (s->cluster > 1 && packs < s->cluster * s->team)
        s->cluster /= 2;
    if (whole_block || s->cluster > 1)
        s->team = clamp(s->team, 2 * WARP, 1024);
    if (s->team > WARP)
        s->block = s->team;
}

/* No more blocks a row than have something to do, nor than the GPU holds many times over. */
static void settle_split(struct rows *r) {
    struct rows_shape *s = &r->shape;
    int64_t team = sheet_decision(r->sh, "row-threads", 1); /* the block, where it is larger */
    int64_t most = rows_columns(&r->g) / (s->outer ? WARP : clamp(team, s->block, 1024) * s->vec);
    int64_t blocks = s->outer ? ceil_div(rows_count(&r->g), s->block * s->vec) : rows_count(&r->g);
    most = clamp(WAVES * r->sh->briefing->gpu->sms / blocks, 0, most);
    s->split = sheet_decision(r->sh, "row-split", auto_split(r));
    if (r->g.any_whole || r->g.ragged)
        s->split = 1;
    while (s->split > 1 && s->split > most)
        s->split /= 2;
}

/* Chains of additions that are too long, or more work than one block should have: where blocks are
 * few, the last one would be waited for. */
static bool is_too_much(const struct rows *r, bool can_split) {
    const struct rows_shape *s = &r->shape;
    int64_t rows = s->outer ? s->block / s->team * s->vec : 1, cols = rows_columns(&r->g);
    return terms_of_chain(r) < cols ||
           (can_split && cols / (s->cluster * s->split) > BLOCK_TERMS / rows);
}

static void shorten_chains(struct rows *r) {
    struct rows_shape *s = &r->shape;
    bool can_split = !r->g.any_whole && !r->g.ragged;
    while (is_too_much(r, can_split)) {
        if (!s->outer && s->team < 1024 && !can_split)
            s->block = s->team = s->team < 2 * WARP ? 2 * WARP : 2 * s->team;
        else if (!s->outer && s->team <= WARP) /* all of a block may be enough */
            s->block = s->team = clamp(s->block, 2 * WARP, 1024);
        else if (can_split)
            s->split *= 2;
        else
            break;
        s->cluster = s->split > 1 ? 1 : s->cluster;
    }
    if (s->split > 1 && !s->outer && s->team <= WARP)
        s->block = s->team = clamp(s->block, 2 * WARP, 1024);
}

void rows_settle_packs(struct rows *r) {
    struct rows_shape *s = &r->shape;
    int64_t bytes = clamp(rows_column_bytes(&r->g), 1, 4);
    int64_t want = sheet_decision(r->sh, "vector-width", 16 / bytes);
    s->outer = rows_lane_var(&r->g) >= 0;
    s->split = s->cluster = s->team = 1;
    s->online = sheet_decision(r->sh, "row-online", 1) != 0;
    s->hint = sheet_decision(r->sh, "cache-hint", 0) != 0;
    s->cute = sheet_is_cute(r->sh);
    s->tree = sheet_decision(r->sh, "reduce-kind", 1) == 0;
    s->cache = (int)sheet_decision(r->sh, "row-cache", 1);
    if (s->outer)
        settle_outer_pack(r, want);
    else
        settle_inner_pack(r, want);
    s->items = sheet_decision(r->sh, "items", s->vec == 1 ? 8 : 4);
    s->block = sheet_decision(r->sh, "block", 256);
    settle_split(r);
}

/* Shared memory of the merges: a part of every thread, or of every warp, for each level. */
static int64_t merge_bytes(const struct rows *r) {
    int64_t words = 0, parts = r->shape.tree ? r->shape.team : WARP + 1;
    for (size_t l = 0; l < r->nlevels; l++)
        words += (int64_t)rows_part_words(r, l) + 2;
    return parts * words * 4;
}

void rows_settle_threads(struct rows *r) {
    if (r->shape.outer)
        settle_outer_threads(r);
    else
        settle_inner_threads(r);
    shorten_chains(r);
    if (merge_bytes(r) > STATIC_BYTES)
        r->shape.tree = false;
}

/* ---- the comment ---- */

static str owner_text(struct rows *r) {
    const struct rows_shape *s = &r->shape;
    if (s->outer)
        return sheet_printf(r->sh, "%lld thread%s a row, lanes side by side have rows side by side",
                            (long long)s->team, s->team == 1 ? " has" : "s share");
    if (s->split > 1)
        return sheet_printf(r->sh, "%lld blocks of %lld threads share a row", (long long)s->split,
                            (long long)s->block);
    if (s->cluster > 1)
        return sheet_printf(r->sh, "A cluster of %lld blocks of %lld threads has a row",
                            (long long)s->cluster, (long long)s->block);
    return sheet_printf(
        r->sh, s->team > WARP ? "A block of %lld threads has a row" : "%lld lanes have a row",
        (long long)s->team);
}

static str place_text(struct rows *r) {
    static const char *const caches[] = {"", "; its columns stay in registers",
                                         "; its columns stay in shared memory"};
    str owner = owner_text(r);
    return TEXT(r->sh, "$$$.", owner, str_view(caches[r->shape.cache]),
                r->shape.ahead ? S(", and the next row comes to L2 meanwhile") : S(""));
}

str rows_comment(struct rows *r) {
    const struct rows_shape *s = &r->shape;
    str text = place_text(r);
    if (s->shifted)
        text = sheet_printf(r->sh,
                            "%.*s\n// Rows begin at any element: packs of %lld are aligned in "
                            "memory, the row's ends masked.",
                            STR_ARG(text), (long long)s->vec);
    return text;
}

/* ---- what is kept between passes ---- */

int64_t rows_kept_bytes(const struct rows *r) {
    int64_t bytes = 0;
    for (size_t i = 0; i < r->nreads; i++)
        if (r->reads[i].cached)
            bytes +=
                (int64_t)dtype_info(r->st->inst->task->tensors[r->reads[i].e->ref].dtype)->bytes;
    return bytes;
}

static int64_t rows_slack(const struct rows *r) {
    return r->shape.shifted ? r->shape.vec - 1 : 0;
}

static bool fits_registers(struct rows *r) {
    struct rows_shape *s = &r->shape;
    int64_t cols = rows_columns(&r->g) + rows_slack(r);
    int64_t across = s->outer ? s->team : s->team * s->vec * s->cluster;
    int64_t items = ceil_div(cols, across), most = s->block > 512 ? REGISTERS / 2 : REGISTERS;
    int64_t each = s->vec * clamp(rows_kept_bytes(r) / 4, 1, 64);
    if (items * each > most)
        return false;
    s->items = at_least_power(items) * each > most ? items : at_least_power(items);
    return true;
}

static int64_t rows_chunk(const struct rows *r) {
    int64_t unit = r->shape.cache == 2 ? 16 : r->shape.vec;
    int64_t parts = r->shape.cluster * r->shape.split;
    return ceil_div(rows_columns(&r->g) + rows_slack(r), parts * unit) * unit;
}

static bool fits_shared(struct rows *r) {
    struct rows_shape *s = &r->shape;
    int64_t most = sheet_shared_most(r->sh) - merge_bytes(r);
    if (s->outer || s->team <= WARP)
        return false;
    for (s->cache = 2; s->cluster < r->sh->briefing->gpu->has.cluster_most; s->cluster *= 2)
        if (rows_chunk(r) * rows_kept_bytes(r) <= most)
            return true;
    return rows_chunk(r) * rows_kept_bytes(r) <= most;
}

str rows_chunk_plan(struct rows *r) {
    int64_t unit = r->shape.cache == 2 ? 16 : r->shape.vec;
    str cols = sheet_plan(r->sh, rows_product(r, r->g.nkept, r->g.nkept + r->g.ncols));
    if (rows_slack(r))
        cols = TEXT(r->sh, "$ + $", cols, sheet_number(r->sh, rows_slack(r)));
    int64_t parts = r->shape.cluster * r->shape.split;
    return sheet_printf(r->sh, "ceil_div(%.*s, %lld)*%lld", STR_ARG(cols),
                        (long long)(parts * unit), (long long)unit);
}

static void require_kept(struct rows *r) {
    const struct rows_shape *s = &r->shape;
    if (r->g.ragged)
        return;
    str cols = sheet_plan(r->sh, rows_product(r, r->g.nkept, r->g.nkept + r->g.ncols));
    if (s->cache == 2) {
        str chunk = rows_chunk_plan(r);
        sheet_require_for(r->sh, "A longer row does not fit shared memory.", "%.*s*%lld <= %lld",
                          STR_ARG(chunk), (long long)rows_kept_bytes(r),
                          (long long)(sheet_shared_most(r->sh) - merge_bytes(r)));
    } else if (s->cache == 1) {
        int64_t most = s->items * s->team * (s->outer ? 1 : s->vec * s->cluster) - rows_slack(r);
        sheet_require_for(r->sh, "A longer row does not fit the registers that keep it.",
                          "%.*s <= %lld", STR_ARG(cols), (long long)most);
    } else if (most_columns(r) == terms_of_chain(r)) {
        sheet_require_for(r->sh, "The chain of sums of a longer row would be less accurate.",
                          "%.*s <= %lld", STR_ARG(cols), (long long)most_columns(r));
    } else {
        sheet_require_for(r->sh, SCOPE_INT_WHY, "%.*s <= %lld", STR_ARG(cols),
                          (long long)most_columns(r));
    }
}

/* Rows of a block or a cluster each whose elements are kept, with something to fetch ahead. */
static bool can_go_ahead(const struct rows *r) {
    const struct rows_shape *s = &r->shape;
    bool dense = false;
    for (size_t i = 0; i < r->nreads; i++)
        dense |= rows_is_dense(r, &r->reads[i]);
    return dense && r->g.any_whole && !s->outer && s->split == 1 && s->cache &&
           s->team == s->block && r->g.nkept && r->sh->briefing->gpu->has.cluster_most > 1;
}

/* Clusters lie within groups of SMs, of which only whole eighths are counted on. */
int64_t rows_resident(const struct rows *r) {
    const struct rows_shape *s = &r->shape;
    const struct gpu *gpu = r->sh->briefing->gpu;
    int64_t each = gpu->max_threads_sm / s->block, sms = gpu->sms;
    int64_t bytes = merge_bytes(r) + 1024;
    if (s->cache == 2)
        bytes += rows_chunk(r) * rows_kept_bytes(r);
    each = clamp(each, 1, clamp((int64_t)gpu->shared_sm / bytes, 1, gpu->max_blocks_sm));
    if (s->cluster > 1 && sms >= 8)
        sms = sms / 8 * 8;
    return clamp(sms * each / s->cluster, 1, INT32_MAX);
}

void rows_settle_cache(struct rows *r) {
    struct rows_shape *s = &r->shape;
    int64_t cluster = s->cluster;
    int want = s->cache;
    bool several = rows_kept_bytes(r) > 0 && !r->g.ragged && s->split == 1;
    s->cache = 0;
    if (several && want == 2 && fits_shared(r))
        s->cache = 2;
    else if (several && want && fits_registers(r))
        s->cache = 1;
    else if (several && want && fits_shared(r))
        s->cache = 2;
    else
        s->cache = 0;
    if (s->cache != 2)
        s->cluster = cluster;
    s->ahead = sheet_decision(r->sh, "row-ahead", 0) && can_go_ahead(r);
    require_kept(r);
}

static void note_step(struct rows *r) {
    str names = S(""), place = place_text(r);
    for (size_t i = 0; i < r->st->inst->task->nstatements; i++) {
        str name = r->st->inst->task->tensors[r->st->inst->task->statements[i].tensor].name;
        names = sheet_join(r->sh, names, ", ", name);
    }
    sheet_note(r->sh, "rows: %.*s%s. %.*s", STR_ARG(names), r->shape.cute ? ", in CuTe" : "",
               STR_ARG(place));
}

/* Folds that need each other in one pass. */
static bool is_online(const struct rows *r) {
    for (size_t l = 0; l < r->nlevels; l++)
        for (size_t i = 0; i < r->levels[l].nunits; i++)
            if (r->levels[l].units[i].kind == UNIT_MOMENTS ||
                r->levels[l].units[i].kind == UNIT_SOFTMAX)
                return true;
    return false;
}

void rows_note(struct rows *r) {
    const struct rows_shape *s = &r->shape;
    /* Merge their threads' parts: of rows, or of what a row was split into. */
    bool blocks = s->split > 1 || (!s->outer && s->team > WARP);
    const struct used all[] = {
        {"block", s->block},          {"vector-width", s->vec},
        {"items", s->items},          {"row-threads", s->team},
        {"row-cluster", s->cluster},  {"row-split", s->split},
        {"row-cache", s->cache},      {"row-ahead", s->ahead},
        {"row-online", is_online(r)}, {"reduce-kind", !blocks || !s->tree},
    };
    note_step(r);
    sheet_used(r->sh, all, sizeof all / sizeof *all);
}

/* ---- what rows are like, for openings ---- */

static int64_t percent(int64_t bytes, size_t of) {
    return (int64_t)ceil(100.0 * (double)bytes / (double)of);
}

bool rows_facts(const struct briefing *b, const struct step *st, struct step_facts *out) {
    struct arena *mem = arena_new(16u << 20);
    struct rows_group g;
    bool take[TASK_MAX_STATEMENTS];
    bool matched = rows_match(st->inst, 0, NULL, true, mem, &g, take);
    if (matched) {
        int64_t columns = rows_columns(&g), bytes = columns * (int64_t)rows_column_bytes(&g);
        out->value[STEP_OUTER] = rows_lane_var(&g) >= 0;
        out->value[STEP_WHOLE] = g.any_whole;
        out->value[STEP_ROWS] = rows_count(&g);
        out->value[STEP_ROWS_PER_SM] = rows_count(&g) / b->gpu->sms;
        out->value[STEP_COLUMNS] = columns;
        out->value[STEP_ROW_BYTES] = bytes;
        out->value[STEP_ROW_SHARE] = percent(bytes, b->gpu->shared_sm);
        out->value[STEP_BLOCK_SHARE] = percent(bytes, b->gpu->shared_block);
    }
    arena_free(mem);
    return matched;
}
