/* The row family: reductions over any axes, arg-reductions, row normalisations and softmax-like
 * chains, losses to a number.
 *
 * One kernel does all of a group where a team of threads (lanes of a warp, a block, a cluster) owns
 * a row. Where rows are few and long, blocks share them: a kernel writes parts, a second one puts
 * the parts of each row together, in a fixed order; maps over columns are then left to the
 * pointwise family.
 *
 * What to choose for its decisions, by the kind of rows: assets/openings/rows.openings.
 * row-online=1 wherever a pass reads memory; with a row that is kept a second pass is free and
 * needs fewer exponentials. cache-hint=1 where tensors are larger than L2. row-cache=0 wins only
 * for tensors that L2 holds. */
#include "agent/expert/rows/rows.h"
#include <string.h>

/* ---- claims ---- */

/* Does a kernel that owns whole rows read them from memory only once? */
static bool is_fusion_worth_it(const struct briefing *b, const struct rows_group *g) {
    double bytes = (double)rows_columns(g) * (double)rows_column_bytes(g);
    double rows = (double)rows_count(g), sms = b->gpu->sms;
    if (rows_lane_var(g) >= 0)
        return rows_columns(g) <= 1024;
    if (bytes * rows <= (double)b->gpu->l2_bytes / 4)
        return bytes <= 4e6;
    return bytes <= 8 * 225e3 && (bytes <= 225e3 ? rows >= sms / 2 : rows >= sms / 4);
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    struct arena *mem = arena_new(16u << 20);
    struct rows_group g;
    bool ok = rows_match(f->inst, first, done, true, mem, &g, take);
    if (!ok || (g.any_whole && !is_fusion_worth_it(b, &g)))
        ok = rows_match(f->inst, first, done, false, mem, &g, take);
    arena_free(mem);
    return ok;
}

/* ---- what a kernel begins with ---- */

/* A lane has several neighbouring rows, one in each slot. */
static bool is_by_slots(const struct rows *r) {
    return r->shape.outer && r->shape.vec > 1;
}

static str slot_index(const struct rows *r) {
    return is_by_slots(r) ? S("[slot]") : S("");
}

bool rows_has_spare_teams(const struct rows *r) {
    return r->g.nkept > 0 && (r->shape.outer || r->shape.team < r->shape.block);
}

/* Which row and which threads of it. */
static void put_team(struct rows *r, struct slots *s) {
    const struct rows_shape *shape = &r->shape;
    bool teams = shape->team < shape->block;
    if (shape->outer || teams)
        slots_put(s, "rows", rows_size_text(r, rows_product(r, 0, r->g.nkept), r->short_rows));
    slots_flag(s, "outer", shape->outer);
    if (shape->ahead) {
        slots_put(s, "rows", rows_size_text(r, rows_product(r, 0, r->g.nkept), r->short_rows));
        slots_put(s, "steps", shape->cluster > 1 ? S("gridDim.x / kCluster") : S("gridDim.x"));
    }
    slots_flag(s, "ahead", shape->ahead);
    slots_put(s, "own_row", shape->cluster > 1 ? S("blockIdx.x / kCluster") : S("blockIdx.x"));
    slots_flag(s, "clustered", shape->cluster > 1);
    slots_flag(s, "spare", rows_has_spare_teams(r));
    slots_number(s, "team", shape->team);
    slots_number(s, "lanes", shape->block / shape->team);
    slots_number(s, "cluster", shape->cluster);
    slots_put(s, "teams", teams ? slots_get(s, "lanes") : S(""));
    slots_put(s, "row_type", str_view(rows_row_type(r)));
    slots_put(s, "col_type", str_view(rows_col_type(r)));
}

/* How many columns the row has. */
static str columns_text(struct rows *r) {
    size_t var = r->g.nkept;
    if (!r->g.ragged)
        return rows_size_text(r, rows_product(r, var, var + r->g.ncols), r->short_cols);
    str lo = scope_text(&r->k, r->g.lo[var]), hi = scope_text(&r->k, r->g.extent[var]);
    return str_is(lo, "0") ? hi : TEXT(r->sh, "$ - ($)", hi, lo);
}

/* The columns this block has of the row: [from, end), in packs. */
static void put_bounds(struct rows *r, struct slots *s) {
    const struct rows_shape *shape = &r->shape;
    bool shared = shape->cluster > 1 || shape->split > 1;
    if (shared || shape->cache == 2) {
        str name = scope_int_plan(&r->k, "chunk", rows_chunk_plan(r));
        r->chunk = r->short_cols && r->k.wide ? TEXT(r->sh, "(int)$", name) : name;
    }
    r->bounded = shared || shape->shifted;
    r->end = shared ? S("end") : S("cols");
    r->until = r->g.until && !shape->outer && (!shape->cache || !r->g.any_whole);
    slots_put(s, "until", r->until ? scope_text(&r->k, r->g.until) : S(""));
    slots_put(s, "all", r->end);
    r->first =
        TEXT(r->sh, shape->outer ? "$rank" : "$lane * kVec", r->bounded ? S("from + ") : S(""));
    slots_flag(s, "shared", shared);
    slots_flag(s, "shifted", shape->shifted);
    slots_put(s, "shift_base", r->shift_base);
    slots_put(s, "which", shape->split > 1 ? S("(int)blockIdx.y") : S("rank"));
    slots_put(s, "chunk", r->chunk);
}

/* Offsets of reads are in the kept variables, and the cache is chosen by the reads. */
static void put_setup(struct rows *r, struct slots *s) {
    slots_put(s, "kept", rows_kept_text(r));
    rows_make_reads(r);
    if (!r->cache_settled)
        rows_settle_cache(r);
    r->cache_settled = true;
    put_team(r, s);
    put_bounds(r, s);
    slots_put(s, "columns", columns_text(r));
    slots_put(s, "pointers", rows_pointers_text(r));
    slots_flag(s, "passes", true);
    slots_number(s, "vec", r->shape.vec);
    slots_number(s, "items", r->shape.items);
    slots_flag(s, "in_shared_memory", r->shape.cache == 2);
    rows_put_loop(r, s);
}

/* ---- folding ---- */

/* A level: its part, made by a pass or gathered, and its results where it has `results`. */
static void put_level(struct rows *r, size_t level, str pass, bool results, struct slots *s) {
    struct slots *row = slots_row(s, "levels");
    str part = TEXT(r->sh, "$$", r->part, slot_index(r));
    slots_put(row, "part_type", r->levels[level].part);
    slots_put(row, "part", r->part);
    slots_put(row, "pass", pass);
    slots_list(row, "results");
    for (size_t i = 0; results && i < r->g.nfolds; i++) {
        if (r->g.folds[i].level != level)
            continue;
        struct slots *result = slots_row(row, "results");
        slots_put(result, "name", rows_result_name(r, i));
        slots_put(result, "type", str_view(rows_result_type(r, i)));
        slots_put(result, "value", rows_result_value(r, i, part));
    }
}

/* ---- stores ---- */

static str store_text(struct rows *r, const struct expr *place, enum value_kind kind, str value) {
    str pointer = scope_pointer(&r->k, place->ref, true), offset = scope_offset_text(&r->k, place);
    return TEXT(r->sh, "$[$] = $;", pointer, offset, scope_packed(&r->k, place->ref, kind, value));
}

/* Results that have memory: outputs, and what the next level's kernel reads. */
static bool is_stored(const struct rows *r, const struct rows_fold *f) {
    return r->st->inst->task->tensors[f->s->tensor].role != TENSOR_LET ||
           (r->shape.split > 1 && f->level + 1 < r->nlevels);
}

static str stores_text(struct rows *r, size_t from, size_t to) {
    str all = S("");
    str first = rows_set_lane(r);
    for (size_t i = 0; i < r->g.nfolds; i++) {
        const struct rows_fold *f = &r->g.folds[i];
        if (f->level < from || f->level >= to || !is_stored(r, f))
            continue;
        str value = TEXT(r->sh, "$$", rows_result_name(r, i), slot_index(r));
        const struct expr *place = expr_own(r->st->inst->task, f->s, r->sh->mem);
        all = sheet_join(r->sh, all, "\n", store_text(r, place, f->s->body->value_kind, value));
    }
    for (size_t i = 0; to == r->nlevels && i < r->g.nmaps; i++) {
        const struct rows_map *m = &r->g.maps[i];
        if (m->whole)
            continue;
        str value = scope_text(&r->k, m->body);
        all = sheet_join(r->sh, all, "\n", store_text(r, m->place, m->body->value_kind, value));
    }
    rows_reset_lane(r, first);
    return all;
}

/* One thread of each row stores what belongs to it. */
static void put_stores(struct rows *r, str stores, struct slots *s) {
    const struct rows_shape *shape = &r->shape;
    str owner = shape->outer ? S("rank == 0") : S("lane == 0");
    if (shape->cluster > 1)
        owner = TEXT(r->sh, "$ && rank == 0", owner);
    if (rows_has_spare_teams(r))
        owner = TEXT(r->sh, "$ && live", owner);
    slots_put(s, "owner", owner);
    slots_put(s, "stores", stores);
}

/* ---- kernels ---- */

static struct slots *start_kernel(struct rows *r, const char *suffix, size_t level,
                                  uint32_t passes) {
    const struct task *t = r->st->inst->task;
    struct slots *s = sheet_slots(r->sh);
    str number = level ? sheet_number(r->sh, (int64_t)level + 1) : S("");
    scope_init(&r->k, r->sh, r->st, TEXT(r->sh, "$$$", t->name, str_view(suffix), number).p);
    r->k.statement = r->g.folds[0].s;
    r->k.wide |= !r->short_rows || !r->short_cols;
    r->passes = passes;
    r->chunk = S("");
    r->bounded = false;
    r->part = scope_name(&r->k, "part");
    for (size_t i = 0; i < r->g.nmaps; i++) /* so that reads of it go through one pointer */
        if (t->tensors[r->g.maps[i].s->tensor].role == TENSOR_INOUT)
            r->k.written |= UINT64_C(1) << r->g.maps[i].s->tensor;
    slots_put(s, "stores", S(""));
    slots_put(s, "maps", S(""));
    slots_flag(s, "gathers", false);
    return s;
}

static str rows_plan(struct rows *r) {
    return r->g.nkept ? sheet_plan(r->sh, rows_product(r, 0, r->g.nkept)) : S("1");
}

/* Blocks along the rows. */
static str grid_text(struct rows *r) {
    const struct rows_shape *s = &r->shape;
    str rows = rows_plan(r);
    int64_t each = s->outer ? s->block / s->team * s->vec : s->block / s->team;
    if (s->ahead)
        rows = TEXT(r->sh, "min($, $)", rows, sheet_number(r->sh, rows_resident(r)));
    if (s->cluster > 1)
        return TEXT(r->sh, "$*$", rows, sheet_number(r->sh, s->cluster));
    return each == 1 ? rows : TEXT(r->sh, "ceil_div($, $)", rows, sheet_number(r->sh, each));
}

/* How parts become one, the head of the kernel, and its launch. */
static bool finish_kernel(struct rows *r, str comment, str grid, struct slots *s) {
    struct sheet *sh = r->sh;
    const struct rows_shape *shape = &r->shape;
    str block = sheet_number(sh, shape->block), launch = block;
    slots_put(s, "comment", comment);
    slots_put(s, "kernel", r->k.name);
    slots_put(s, "block", block);
    slots_flag(s, "by_slots", is_by_slots(r));
    slots_flag(s, "merges", shape->team > 1);
    slots_put(s, "how", shape->team <= 32 ? S("lanes") : shape->tree ? S("tree") : S("block"));
    slots_put(s, "row_lines", sheet_lines(sh, "rows/row.cu", s));
    slots_put(s, "parameters", scope_params(&r->k));
    if (shape->cache == 2)
        launch =
            TEXT(sh, "$, $*$", launch, rows_chunk_plan(r), sheet_number(sh, rows_kept_bytes(r)));
    if (shape->cluster > 1)
        launch = TEXT(sh, "$, cluster=$", launch, sheet_number(sh, shape->cluster));
    scope_launch(&r->k, grid, launch);
    return sheet_put(sh, "rows/kernel.cu", s, &sh->kernels);
}

/* Folds and maps of the group in one kernel. */
static bool write_single(struct rows *r) {
    struct slots *s = start_kernel(r, "", 0, (UINT32_C(1) << (r->nlevels + 1)) - 1);
    put_setup(r, s);
    for (size_t l = 0; l < r->nlevels; l++) {
        if (l)
            r->part = scope_name(&r->k, "part");
        rows_hold_results(r, 0, l, slot_index(r));
        str part = TEXT(r->sh, "$$", r->part, slot_index(r));
        put_level(r, l, rows_level_text(r, l, part), true, s);
    }
    rows_hold_results(r, 0, r->nlevels, slot_index(r));
    put_stores(r, stores_text(r, 0, r->nlevels), s);
    if (r->g.any_whole)
        slots_put(s, "maps", rows_maps_text(r));
    return finish_kernel(r, rows_comment(r), grid_text(r), s);
}

/* ---- rows that blocks share ---- */

/* The first of the parts of a row. */
static str first_part(struct rows *r, str row, int64_t split) {
    return TEXT(r->sh, "(long long)$ * $", row, sheet_number(r->sh, split));
}

static bool write_partial(struct rows *r, size_t level, str workspace) {
    struct slots *s = start_kernel(r, "_parts", level, UINT32_C(1) << level);
    r->k.own_param = S("void *parts");
    r->k.own_arg = workspace;
    put_setup(r, s);
    str part = TEXT(r->sh, "$$", r->part, slot_index(r));
    put_level(r, level, rows_level_text(r, level, part), false, s);
    str row = r->g.nkept == 0 ? S("0") : is_by_slots(r) ? S("(row + slot)") : S("row");
    str to = first_part(r, row, r->shape.split);
    put_stores(r,
               TEXT(r->sh, "static_cast<$ *>(parts)[$ + blockIdx.y] = $;", r->levels[level].part,
                    to, part),
               s);
    str grid = TEXT(r->sh, "[$, $]", grid_text(r), sheet_number(r->sh, r->shape.split));
    return finish_kernel(r, rows_comment(r), grid, s);
}

/* Teams of a warp put the parts of a row together; of a block where there are few rows. */
static void shape_of_finish(struct rows *r) {
    bool few = rows_count(&r->g) < r->sh->briefing->gpu->sms;
    struct rows_shape *s = &r->shape;
    s->outer = s->shifted = s->ahead = false;
    s->vec = s->items = s->cluster = 1;
    s->block = 256;
    s->team = few || r->g.nkept == 0 ? 256 : 32;
    s->cache = 0;
}

static bool write_finish(struct rows *r, size_t level, str workspace) {
    static const char *const absent[] = {"passes", "shared",           "shifted",
                                         "until",  "in_shared_memory", "in_registers"};
    struct rows_shape kept = r->shape;
    shape_of_finish(r);
    struct slots *s = start_kernel(r, "_rows", level, 0);
    r->k.own_param = S("const void *parts");
    r->k.own_arg = workspace;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        slots_flag(s, absent[i], false);
    slots_put(s, "pointers", S(""));
    put_team(r, s);
    slots_put(s, "kept", rows_kept_text(r));
    slots_put(s, "columns", columns_text(r));
    slots_flag(s, "gathers", true);
    slots_number(s, "split", kept.split);
    slots_put(s, "first_part", r->g.nkept ? first_part(r, S("row"), kept.split) : S("0"));
    put_level(r, level, S(""), true, s);
    rows_hold_results(r, level, level + 1, S(""));
    put_stores(r, stores_text(r, level, level + 1), s);
    bool ok = finish_kernel(r, S("Puts the parts of every row together, in a fixed order."),
                            grid_text(r), s);
    r->shape = kept;
    return ok;
}

static bool write_split(struct rows *r) {
    bool ok = true;
    for (size_t l = 0; l < r->nlevels && ok; l++) {
        str what = TEXT(r->sh, "[$, $, $] : i32", rows_plan(r), sheet_number(r->sh, r->shape.split),
                        sheet_number(r->sh, (int64_t)rows_part_words(r, l)));
        str workspace = sheet_scratch(r->sh, S("parts"), what);
        ok = write_partial(r, l, workspace) && write_finish(r, l, workspace);
    }
    return ok;
}

/* ---- the step ---- */

static bool match_step(struct rows *r) {
    const struct task *t = r->st->inst->task;
    bool take[TASK_MAX_STATEMENTS];
    bool ok = rows_match(r->st->inst, 0, NULL, true, r->sh->mem, &r->g, take);
    for (size_t i = 0; i < t->nstatements; i++)
        ok = ok && take[i];
    return ok || err_set(r->sh->err, ERR_INPUT, "task %.*s: no group of rows", STR_ARG(t->name));
}

static void require_sizes(struct rows *r) {
    const struct rows_group *g = &r->g;
    r->short_rows = rows_count(g) <= INT64_C(1) << 30;
    r->short_cols = rows_columns(g) <= INT64_C(1) << 30;
    if (g->groups[0]) {
        str a = sheet_plan(r->sh, g->groups[0]), b = sheet_plan(r->sh, g->groups[1]);
        sheet_require(r->sh, "%.*s == %.*s", STR_ARG(a), STR_ARG(b));
    }
    if (r->short_rows && g->nkept) {
        str plan = rows_plan(r);
        sheet_require_for(r->sh, SCOPE_INT_WHY, "%.*s <= %lld", STR_ARG(plan), 1ll << 30);
    }
}

static bool write(struct sheet *sh, const struct step *st) {
    struct rows *r = arena_new_of(sh->mem, struct rows);
    r->sh = sh;
    r->st = st;
    if (!match_step(r))
        return false;
    require_sizes(r);
    rows_settle_packs(r);
    rows_make_levels(r);
    rows_settle_threads(r);
    if (r->shape.cute)
        sheet_include(sh, "cute/tensor.hpp");
    if (!rows_write_parts(r) || !(r->shape.split > 1 ? write_split(r) : write_single(r)))
        return false;
    rows_note(r);
    return !sheet_failed(sh);
}

const struct family family_rows = {.name = "rows",
                                   .workload = WORKLOAD_NORMALISATION,
                                   .cute = true,
                                   .facts = rows_facts,
                                   .claim = claim,
                                   .write = write};
