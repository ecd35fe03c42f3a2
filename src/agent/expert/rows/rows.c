/* The row family: reductions over any axes, arg-reductions, row normalisations and softmax-like
 * chains, losses to a number.
 *
 * One kernel does all of a group where a team of threads (lanes of a warp, a block, a cluster) owns
 * a row. Where rows are few and long, blocks share them: a kernel writes parts, a second one puts
 * the parts of each row together, in a fixed order; maps over columns are then left to the
 * pointwise family.
 *
 * Decisions, and what to choose on an H200, by the kind of rows (rows_kind.h), all of them with
 * vector-width 16 bytes, reduce-kind=1, fast-math=1 and block=256 (128 for lanes and warps):
 *   outer    row-threads=8 items=8 row-cache=1 row-online=1; row-threads=32 where rows are few
 *   outer few … row-split=16
 *   one      row-split=1024 row-threads=256 items=4 row-online=1
 *   few      row-split=64 …, some: row-split=16 …
 *   lanes    row-threads=8 row-cache=1 row-online=0
 *   warp     row-threads=32 row-cache=1 row-online=0
 *   block    row-threads=256 row-cache=1 row-online=0; 512 from 8,192 columns on
 *   shared   row-threads=512 items=8 row-cache=2 row-online=0
 *   cluster  … row-cluster=4: two blocks an SM, one loads while the other stores
 *   wide     … row-cluster=8 row-online=1
 *   stream   row-threads=256 items=4 row-cache=0 row-online=1
 * row-online=1 wherever a pass reads memory; with a row that is kept a second pass is free and
 * needs fewer exponentials. cache-hint=1 where tensors are larger than L2. row-cache=0 wins only
 * for tensors that L2 holds. */
#include "agent/expert/rows/rows.h"
#include "agent/expert/sheet/pieces.h"
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
    bool allowed[TASK_MAX_STATEMENTS];
    for (size_t i = 0; i < f->task->nstatements; i++)
        allowed[i] = !done[i];
    bool ok = rows_match(f->inst, first, allowed, true, mem, &g, take);
    if (!ok || (g.any_whole && !is_fusion_worth_it(b, &g)))
        ok = rows_match(f->inst, first, allowed, false, mem, &g, take);
    arena_free(mem);
    return ok;
}

/* ---- folding ---- */

static str row_index(struct rows *r) {
    return r->shape.outer && r->shape.vec > 1 ? sheet_printf(r->sh, "[%.*s]", STR_ARG(r->n.v))
                                              : S("");
}

static str each_row(struct rows *r, str body) {
    struct slot slots[] = {{"v", r->n.v}, {"body", body}};
    return row_index(r).n && body.n ? ROWS_RENDER(r, "rows/elements.cu", slots) : body;
}

static str none_text(struct rows *r, size_t level) {
    str part = r->levels[level].part;
    if (row_index(r).n == 0)
        return sheet_printf(r->sh, "%.*s %.*s = %.*s::none();", STR_ARG(part), STR_ARG(r->n.part),
                            STR_ARG(part));
    str each = sheet_printf(r->sh, "%.*s[%.*s] = %.*s::none();", STR_ARG(r->n.part),
                            STR_ARG(r->n.v), STR_ARG(part));
    str declare = sheet_printf(r->sh, "%.*s %.*s[kVec];", STR_ARG(part), STR_ARG(r->n.part));
    return rows_lines(r, declare, each_row(r, each));
}

static str merge_text(struct rows *r) {
    struct sheet *sh = r->sh;
    const struct rows_shape *s = &r->shape;
    str p = r->n.part, index = row_index(r);
    if (s->team == 1)
        return S("");
    if (s->outer)
        return each_row(r, sheet_printf(sh,
                                        "%.*s%.*s = cp_merge_columns<kTeam, kLanes>(%.*s%.*s, "
                                        "%.*s, %.*s);",
                                        STR_ARG(p), STR_ARG(index), STR_ARG(p), STR_ARG(index),
                                        STR_ARG(r->n.lane), STR_ARG(r->n.rank)));
    const char *how = s->team <= 32 ? "lanes" : s->tree ? "tree" : "block";
    str all = sheet_printf(sh, "%.*s = cp_merge_%s<kTeam>(%.*s);", STR_ARG(p), how, STR_ARG(p));
    if (s->cluster > 1)
        all = rows_lines(
            r, all,
            sheet_printf(sh, "%.*s = cp_merge_cluster<kCluster>(%.*s);", STR_ARG(p), STR_ARG(p)));
    return all;
}

static str results_text(struct rows *r, size_t level) {
    str index = row_index(r), declare = S(""), values = S("");
    str part = sheet_printf(r->sh, "%.*s%.*s", STR_ARG(r->n.part), STR_ARG(index));
    for (size_t i = 0; i < r->g.nfolds; i++) {
        if (r->g.folds[i].level != level)
            continue;
        str name = rows_result_name(r, i), value = rows_result_value(r, i, part);
        const char *type = rows_result_type(r, i);
        if (index.n)
            declare =
                rows_lines(r, declare, sheet_printf(r->sh, "%s %.*s[kVec];", type, STR_ARG(name)));
        values = rows_lines(r, values,
                            sheet_printf(r->sh, "%s%s%.*s%.*s = %.*s;", index.n ? "" : "const ",
                                         index.n          ? ""
                                         : type[0] == 'f' ? "float "
                                                          : "long long ",
                                         STR_ARG(name), STR_ARG(index), STR_ARG(value)));
    }
    return rows_lines(r, declare, each_row(r, values));
}

/* ---- stores ---- */

static struct expr *fold_place(struct rows *r, const struct statement *s) {
    struct expr *e = arena_new_of(r->sh->mem, struct expr);
    size_t rank = r->st->inst->task->tensors[s->tensor].rank;
    *e =
        (struct expr){.kind = EXPR_READ, .value_kind = VALUE_REAL, .ref = s->tensor, .nargs = rank};
    e->args = arena_array(r->sh->mem, struct expr *, rank ? rank : 1);
    for (size_t i = 0; i < rank; i++) {
        struct expr *v = arena_new_of(r->sh->mem, struct expr);
        *v = (struct expr){
            .kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = (size_t)s->position[i]};
        e->args[i] = s->position[i] < 0 ? s->constant[i] : v;
    }
    return e;
}

static str store_text(struct rows *r, const struct expr *place, enum value_kind kind, str value) {
    struct buf b;
    buf_init(&b, 64u << 10);
    str pointer = scope_pointer(&r->k, place->ref, true);
    scope_offset(&r->k, place, &b);
    str packed = scope_packed(&r->k, place->ref, kind, value);
    str text = sheet_printf(r->sh, "%.*s[%.*s] = %.*s;", STR_ARG(pointer), STR_ARG(buf_str(&b)),
                            STR_ARG(packed));
    buf_release(&b);
    return text;
}

/* Results that have memory: outputs, and what the next level's kernel reads. */
static bool is_stored(const struct rows *r, const struct rows_fold *f) {
    return r->st->inst->task->tensors[f->s->tensor].role != TENSOR_LET ||
           (r->shape.split > 1 && f->level + 1 < r->nlevels);
}

static str stores_text(struct rows *r, size_t from, size_t to) {
    str all = S(""), index = row_index(r);
    int lane = rows_lane_var(&r->g);
    str first = lane >= 0 ? r->k.var[lane] : S("");
    if (index.n)
        r->k.var[lane] = sheet_printf(r->sh, "(%.*s + %.*s)", STR_ARG(first), STR_ARG(r->n.v));
    for (size_t i = 0; i < r->g.nfolds; i++) {
        const struct rows_fold *f = &r->g.folds[i];
        if (f->level < from || f->level >= to || !is_stored(r, f))
            continue;
        str name = rows_result_name(r, i);
        str value = sheet_printf(r->sh, "%.*s%.*s", STR_ARG(name), STR_ARG(index));
        all = rows_lines(r, all, store_text(r, fold_place(r, f->s), f->s->body->value_kind, value));
    }
    for (size_t i = 0; to == r->nlevels && i < r->g.nmaps; i++) {
        const struct rows_map *m = &r->g.maps[i];
        if (!m->whole)
            all = rows_lines(
                r, all, store_text(r, m->place, m->body->value_kind, scope_text(&r->k, m->body)));
    }
    if (lane >= 0)
        r->k.var[lane] = first;
    return all;
}

/* One thread of each row stores what belongs to it. */
static str guarded_stores(struct rows *r, size_t from, size_t to) {
    const struct rows_shape *s = &r->shape;
    str body = stores_text(r, from, to), lane = s->outer ? r->n.rank : r->n.lane;
    str inside = sheet_printf(r->sh, "%.*s == 0", STR_ARG(lane));
    if (body.n == 0)
        return body;
    if (s->cluster > 1)
        inside = sheet_printf(r->sh, "%.*s && %.*s == 0", STR_ARG(inside), STR_ARG(r->n.rank));
    if (rows_has_spare_teams(r))
        inside = sheet_printf(r->sh, "%.*s && %.*s", STR_ARG(inside), STR_ARG(r->n.live));
    struct slot slots[] = {{"inside", inside}, {"body", each_row(r, body)}};
    return ROWS_RENDER(r, "rows/if.cu", slots);
}

/* ---- kernels ---- */

static bool start_kernel(struct rows *r, const char *suffix, size_t level, uint32_t passes) {
    const struct task *t = r->st->inst->task;
    str number = level ? sheet_printf(r->sh, "%zu", level + 1) : S("");
    str name = sheet_printf(r->sh, "%.*s%s%.*s", STR_ARG(t->name), suffix, STR_ARG(number));
    if (!scope_init(&r->k, r->sh, r->st, name.p))
        return false;
    r->k.statement = r->g.folds[0].s;
    r->k.wide |= !r->short_rows || !r->short_cols;
    r->passes = passes;
    r->chunk = S("");
    r->bounded = false;
    for (size_t i = 0; i < r->g.nmaps; i++) /* so that reads of it go through one pointer */
        if (t->tensors[r->g.maps[i].s->tensor].role == TENSOR_INOUT)
            r->k.written |= UINT64_C(1) << r->g.maps[i].s->tensor;
    rows_make_names(r);
    return true;
}

struct launch {
    str comment, memory; /* a parameter for parts, or empty */
    str argument;
    str grid;
    int64_t block;
};

static bool finish_kernel(struct rows *r, const struct launch *l, str body) {
    struct sheet *sh = r->sh;
    const struct rows_shape *s = &r->shape;
    str params = scope_params(&r->k), args = scope_args(&r->k), extra = S("");
    if (l->memory.n) {
        params = sheet_printf(sh, "%.*s%s%.*s", STR_ARG(l->memory), params.n ? ", " : "",
                              STR_ARG(params));
        args =
            sheet_printf(sh, "%.*s%s%.*s", STR_ARG(l->argument), args.n ? ", " : "", STR_ARG(args));
    }
    if (s->cache == 2) {
        str chunk = rows_chunk_plan(r);
        extra = sheet_printf(sh, ", %.*s*%lld", STR_ARG(chunk), (long long)rows_kept_bytes(r));
    }
    if (s->cluster > 1)
        extra = sheet_printf(sh, "%.*s, cluster=%lld", STR_ARG(extra), (long long)s->cluster);
    sheet_step(sh, "launch %.*s<<<%.*s, %lld%.*s>>>(%.*s)", STR_ARG(r->k.name), STR_ARG(l->grid),
               (long long)l->block, STR_ARG(extra), STR_ARG(args));
    struct slot slots[] = {{"comment", l->comment},
                           {"block", sheet_printf(sh, "%lld", (long long)l->block)},
                           {"kernel", r->k.name},
                           {"params", params},
                           {"body", body}};
    return sheet_template(sh, "rows/kernel.cu", slots, sizeof slots / sizeof *slots, &sh->kernels);
}

static str rows_plan(struct rows *r) {
    return r->g.nkept ? sheet_plan(r->sh, rows_product(r, 0, r->g.nkept)) : S("1");
}

/* Blocks along the rows. */
static str grid_text(struct rows *r) {
    const struct rows_shape *s = &r->shape;
    str rows = rows_plan(r);
    int64_t each = s->outer ? s->block / s->team * s->vec : s->block / s->team;
    if (s->cluster > 1)
        return sheet_printf(r->sh, "%.*s*%lld", STR_ARG(rows), (long long)s->cluster);
    return each == 1 ? rows
                     : sheet_printf(r->sh, "ceil_div(%.*s, %lld)", STR_ARG(rows), (long long)each);
}

/* Folds and maps of the group in one kernel. */
static bool write_single(struct rows *r) {
    uint32_t passes = (UINT32_C(1) << (r->nlevels + 1)) - 1;
    if (!start_kernel(r, "", 0, passes))
        return false;
    str setup = rows_setup_text(r), body = rows_lines(r, rows_constants_text(r, true), setup);
    for (size_t l = 0; l < r->nlevels; l++) {
        if (l)
            r->n.part = rows_local(r, S("part"));
        rows_hold_results(r, 0, l, row_index(r));
        str none = none_text(r, l);
        str loop = r->shape.outer ? rows_outer_level_text(r, l) : rows_level_text(r, l);
        body = rows_lines(r, body, sheet_printf(r->sh, "\n%.*s", STR_ARG(none)));
        body = rows_lines(r, body,
                          rows_lines(r, loop, rows_lines(r, merge_text(r), results_text(r, l))));
    }
    rows_hold_results(r, 0, r->nlevels, row_index(r));
    body = rows_lines(r, body, guarded_stores(r, 0, r->nlevels));
    if (r->g.any_whole) {
        str maps = r->shape.outer ? rows_outer_maps_text(r) : rows_maps_text(r);
        body = rows_lines(r, body, sheet_printf(r->sh, "\n%.*s", STR_ARG(maps)));
    }
    struct launch l = {.comment = rows_comment(r), .grid = grid_text(r), .block = r->shape.block};
    return finish_kernel(r, &l, body);
}

/* ---- rows that blocks share ---- */

static str part_store(struct rows *r, str memory, size_t level) {
    struct sheet *sh = r->sh;
    const struct rows_shape *s = &r->shape;
    str part = r->levels[level].part, index = row_index(r);
    str row = r->g.nkept == 0 ? S("0") : r->n.row;
    if (index.n)
        row = sheet_printf(sh, "(%.*s + %.*s)", STR_ARG(row), STR_ARG(r->n.v));
    str store = sheet_printf(
        sh, "static_cast<%.*s *>(%.*s)[(long long)%.*s * %lld + blockIdx.y] = %.*s%.*s;",
        STR_ARG(part), STR_ARG(memory), STR_ARG(row), (long long)s->split, STR_ARG(r->n.part),
        STR_ARG(index));
    str lane = s->outer ? r->n.rank : r->n.lane;
    str inside = sheet_printf(sh, rows_has_spare_teams(r) ? "%.*s == 0 && %.*s" : "%.*s == 0",
                              STR_ARG(lane), STR_ARG(r->n.live));
    struct slot slots[] = {{"inside", inside}, {"body", each_row(r, store)}};
    return ROWS_RENDER(r, "rows/if.cu", slots);
}

static bool write_partial(struct rows *r, size_t level, str workspace) {
    if (!start_kernel(r, "_parts", level, UINT32_C(1) << level))
        return false;
    str memory = rows_local(r, S("parts"));
    str setup = rows_setup_text(r), body = rows_lines(r, rows_constants_text(r, true), setup);
    str none = none_text(r, level);
    str loop = r->shape.outer ? rows_outer_level_text(r, level) : rows_level_text(r, level);
    body = rows_lines(r, body, sheet_printf(r->sh, "\n%.*s", STR_ARG(none)));
    body = rows_lines(r, body, rows_lines(r, loop, merge_text(r)));
    body = rows_lines(r, body, part_store(r, memory, level));
    str grid = grid_text(r);
    struct launch l = {
        .comment = rows_comment(r),
        .memory = sheet_printf(r->sh, "void *%.*s", STR_ARG(memory)),
        .argument = workspace,
        .grid = sheet_printf(r->sh, "[%.*s, %lld]", STR_ARG(grid), (long long)r->shape.split),
        .block = r->shape.block};
    return finish_kernel(r, &l, body);
}

/* Teams of a warp put the parts of a row together; of a block where there are few rows. */
static void shape_of_finish(struct rows *r) {
    bool few = rows_count(&r->g) < r->sh->briefing->gpu->sms;
    struct rows_shape *s = &r->shape;
    s->outer = s->shifted = false;
    s->vec = s->items = s->cluster = 1;
    s->block = 256;
    s->team = few || r->g.nkept == 0 ? 256 : 32;
    s->cache = 0;
}

static bool write_finish(struct rows *r, size_t level, str workspace) {
    struct rows_shape kept = r->shape;
    shape_of_finish(r);
    if (!start_kernel(r, "_rows", level, 0))
        return false;
    str memory = rows_local(r, S("parts"));
    str body = rows_lines(r, rows_constants_text(r, false), rows_team_text(r));
    body = rows_lines(r, body, rows_kept_text(r));
    body = rows_lines(r, body, rows_columns_text(r));
    struct slot slots[] = {
        {"type", r->levels[level].part},
        {"part", r->n.part},
        {"memory", memory},
        {"row", r->g.nkept ? sheet_printf(r->sh, "(long long)%.*s * %lld", STR_ARG(r->n.row),
                                          (long long)kept.split)
                           : S("0")},
        {"split", sheet_printf(r->sh, "%lld", (long long)kept.split)},
        {"lane", r->n.lane},
        {"live",
         rows_has_spare_teams(r) ? sheet_printf(r->sh, "%.*s && ", STR_ARG(r->n.live)) : S("")},
        {"at", r->n.at}};
    body = rows_lines(
        r, body, sheet_printf(r->sh, "\n%.*s", STR_ARG(ROWS_RENDER(r, "rows/gather.cu", slots))));
    body = rows_lines(r, body, rows_lines(r, merge_text(r), results_text(r, level)));
    rows_hold_results(r, level, level + 1, S(""));
    body = rows_lines(r, body, guarded_stores(r, level, level + 1));
    struct launch l = {.comment = S("Puts the parts of every row together, in a fixed order."),
                       .memory = sheet_printf(r->sh, "const void *%.*s", STR_ARG(memory)),
                       .argument = workspace,
                       .grid = grid_text(r),
                       .block = r->shape.block};
    bool ok = finish_kernel(r, &l, body);
    r->shape = kept;
    return ok;
}

static bool write_split(struct rows *r) {
    bool ok = true;
    for (size_t l = 0; l < r->nlevels && ok; l++) {
        str workspace = sheet_name(r->sh, S("parts")), rows = rows_plan(r);
        sheet_memory(r->sh, "workspace %.*s[%.*s, %lld, %zu] : i32", STR_ARG(workspace),
                     STR_ARG(rows), (long long)r->shape.split, rows_part_words(r, l));
        ok = write_partial(r, l, workspace) && write_finish(r, l, workspace);
    }
    return ok;
}

/* ---- the step ---- */

/* What every kernel of the file shares. */
static bool write_shared_functions(struct rows *r) {
    const struct rows_shape *s = &r->shape;
    bool block = s->split > 1 || (!s->outer && s->team > 32), lanes = s->split > 1 || !s->outer;
    str kernels = buf_str(&r->sh->kernels);
    struct {
        bool wanted;
        const char *mark, *name;
    } const all[] = {
        {s->shifted && !s->cute, "cp_load_edge(", "rows/edge.cu"},
        {str_find(kernels, S("cp_reload<")) < kernels.n, "cp_reload(", "rows/reload.cu"},
        {s->cache == 2 && s->vec > 1 && !s->cute, "cp_kept(", "rows/kept.cu"},
        {lanes, "cp_merge_lanes(P", "rows/merge_lanes.cu"},
        {block && !s->tree, "cp_merge_block(P", "rows/merge_block.cu"},
        {block && s->tree, "cp_merge_tree(P", "rows/merge_tree.cu"},
        {s->cluster > 1, "cp_merge_cluster(P", "rows/merge_cluster.cu"},
        {s->outer && s->team > 1, "cp_merge_columns(P", "rows/merge_columns.cu"},
    };
    if (s->cute && !rows_cute_functions(r))
        return false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        str text = buf_str(&r->sh->functions);
        if (all[i].wanted && str_find(text, str_view(all[i].mark)) == text.n &&
            !sheet_template(r->sh, all[i].name, NULL, 0, &r->sh->functions))
            return false;
    }
    return true;
}

static bool match_step(struct rows *r) {
    const struct task *t = r->st->inst->task;
    bool allowed[TASK_MAX_STATEMENTS], take[TASK_MAX_STATEMENTS];
    for (size_t i = 0; i < t->nstatements; i++)
        allowed[i] = true;
    bool ok = rows_match(r->st->inst, 0, allowed, true, r->sh->mem, &r->g, take);
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
        sheet_require(r->sh, "%.*s <= %lld", STR_ARG(plan), 1ll << 30);
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
    if (!rows_write_parts(r) || !(r->shape.split > 1 ? write_split(r) : write_single(r)) ||
        !write_shared_functions(r))
        return false;
    rows_note(r);
    return !sheet_failed(sh);
}

const struct family family_rows = {.name = "rows",
                                   .workload = WORKLOAD_NORMALISATION,
                                   .cute = true,
                                   .claim = claim,
                                   .write = write};
