/* family_scan: folds over everything up to (or from) an index, which share their terms along it.
 *
 * Positions count in the order of the scan: position p is index p of the axis, or, backwards, index
 * D-1-p. All kernels work in positions and turn them into indices where they touch memory.
 *
 * Along the innermost axis (rows.cu) a row goes to a block (or a warp) in chunks: each thread scans
 * its vectors, shuffles scan over the lanes, shared memory over the warps, and the total is carried
 * to the next chunk. Long rows are cut: into parts whose totals a first kernel makes (totals.cu),
 * or into single chunks that look back at those before them. Along another axis (columns.cu) a
 * thread walks down a few neighbouring columns, so that every access of a warp is contiguous; where
 * there are few columns, the axis is cut into parts too. */
#include "agent/expert/plan/step_facts.h"
#include "agent/expert/sheet/pieces.h"
#include "spec/domain.h"
#include "spec/pattern.h"

#define COLUMN_LEAST 8    /* rows of a part, where threads walk down columns */
#define STRETCH      1024 /* terms of one chain down a column */

struct scan_shape {
    size_t axis;             /* the index variable along which is scanned */
    bool reverse, exclusive; /* from the end; without the element itself */
    struct expr *term;       /* with the reduced variable replaced by the axis */
    struct expr *guard;      /* NULL: all terms; likewise */
};

enum { STREAMS_MOST = 12 };
/* A step on its way into a sheet. */
struct scan {
    struct sheet *sh;
    const struct step *st;
    const struct inst *in;
    const struct statement *fold;
    struct scan_shape shape;
    size_t last; /* the innermost variable: neighbours lie along it */
    bool inner;  /* it is the axis */
    /* decisions, as far as the shape allows them */
    int64_t block, items, width, split;
    bool warp, lookback, prefetch;
    bool totals; /* of the kernel being written: it only folds */
    /* Of the running value, of a result, and of the running value in a workspace. Products run in
     * double: what a part of a row multiplies to may leave fp32's range where no result does. */
    const char *type, *value, *memory;
    str identity, combine;
    struct slots slots; /* the same in all kernels of the step */
    struct scope k;     /* of the kernel being written */
    struct {            /* reads that come as vectors */
        const struct expr *read;
        str now, next; /* what is used, and what is loaded ahead */
        bool late;     /* only what follows the fold reads it */
    } streams[STREAMS_MOST];
    size_t nstreams;
};

/* ---- recognition ---- */

/* The expression is a variable of the left side plus a number that no size changes. */
static bool is_shifted(const struct inst *in, const struct statement *s, const struct expr *e,
                       size_t *var, int64_t *by) {
    struct affine f;
    if (expr_has(e, EXPR_DIM) || !affine_of(in, e, &f) || __builtin_popcount(f.vars) != 1)
        return false;
    *var = (size_t)__builtin_ctz(f.vars);
    *by = f.c;
    return *var < s->nindex && f.coef[*var] == 1;
}

/* k <= j: lo 0, hi j + 1; k < j: hi j; j <= k < D: lo j, hi D; j < k < D: lo j + 1. */
static bool by_range(const struct inst *in, const struct statement *s, const struct reduce_var *v,
                     struct scan_shape *out) {
    int64_t by;
    if (expr_is_number(v->lo, 0) && is_shifted(in, s, v->hi, &out->axis, &by)) {
        out->reverse = false;
        out->exclusive = by == 0;
        return by == 0 || by == 1;
    }
    if (!is_shifted(in, s, v->lo, &out->axis, &by) ||
        !expr_same(v->hi, statement_extent(in->task, s, out->axis)))
        return false;
    out->reverse = true;
    out->exclusive = by == 1;
    return by == 0 || by == 1;
}

/* All k of the axis, of which a guard selects k <= j, k < j, k >= j or k > j. */
static bool by_guard(const struct inst *in, const struct statement *s, const struct reduce *r,
                     struct scan_shape *out) {
    const struct reduce_var *v = &r->vars[0];
    const struct expr *g = r->guard, *l = g->args[0], *h = g->args[1];
    bool flipped = l->kind == EXPR_INDEX && l->ref != v->var;
    if (l->kind != EXPR_INDEX || h->kind != EXPR_INDEX || (flipped ? h : l)->ref != v->var)
        return false;
    out->axis = (flipped ? l : h)->ref;
    if (out->axis >= s->nindex || !expr_is_number(v->lo, 0) ||
        !expr_same(v->hi, statement_extent(in->task, s, out->axis)))
        return false;
    bool less = g->kind == EXPR_LT || g->kind == EXPR_LE;
    out->reverse = less == flipped;
    out->exclusive = g->kind == EXPR_LT || g->kind == EXPR_GT;
    return true;
}

static bool recognise(const struct inst *in, const struct statement *s, struct arena *a,
                      struct scan_shape *out) {
    if (!form_is_fold(s) || s->body->reduce->op >= REDUCTION_ARGMAX ||
        !pattern_is_prefix(s->body) || !maps_plain_left(in->task, s) ||
        s->body->value_kind == VALUE_BOOL)
        return false;
    const struct reduce *r = s->body->reduce;
    bool bounded = expr_vars(r->vars[0].lo) || expr_vars(r->vars[0].hi);
    *out = (struct scan_shape){.axis = 0};
    if (!(bounded ? by_range(in, s, &r->vars[0], out) : by_guard(in, s, r, out)) ||
        (bounded && r->guard && (r->op == REDUCTION_MEAN || expr_has(r->guard, EXPR_REDUCE))))
        return false;
    struct expr *map[TASK_MAX_VARS] = {NULL};
    map[r->vars[0].var] = expr_variable(a, out->axis);
    out->term = expr_replace(s->body->args[0], map, a);
    out->guard = bounded && r->guard ? expr_replace(r->guard, map, a) : NULL;
    return true;
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    struct arena *a = arena_new(8u << 20);
    struct scan_shape shape;
    (void)b;
    bool mine = recognise(f->inst, &f->task->statements[first], a, &shape);
    arena_free(a);
    if (mine)
        maps_claim(f, done, first, take);
    return mine;
}

/* ---- streams ---- */

/* Neighbours along the innermost variable are neighbours in memory, wherever a vector begins. */
static bool is_stream(const struct scan *s, const struct expr *e) {
    const struct tensor *x = &s->in->task->tensors[e->ref];
    if (form_definitions(s->in->task, e->ref) || x->rank == 0 || x->role == TENSOR_INOUT ||
        !place_is_sure(s->in, s->fold, e))
        return false;
    for (size_t i = 0; i + 1 < e->nargs; i++)
        if (expr_vars(e->args[i]) >> s->last & 1)
            return false;
    return e->args[e->nargs - 1]->kind == EXPR_INDEX && e->args[e->nargs - 1]->ref == s->last;
}

static void add_streams(struct scan *s, const struct expr *e, bool late) {
    if (e->kind == EXPR_PAD)
        return;
    for (size_t i = 0; i < e->nargs; i++)
        add_streams(s, e->args[i], late);
    if (e->kind != EXPR_READ || !is_stream(s, e) || s->nstreams == STREAMS_MOST)
        return;
    for (size_t i = 0; i < s->nstreams; i++)
        if (expr_same(s->streams[i].read, e))
            return;
    str name = s->in->task->tensors[e->ref].name;
    s->streams[s->nstreams].read = e;
    s->streams[s->nstreams].late = late;
    s->streams[s->nstreams].now = sheet_name(s->sh, TEXT(s->sh, "$_now", name));
    s->streams[s->nstreams++].next = sheet_name(s->sh, TEXT(s->sh, "$_next", name));
}

static void find_streams(struct scan *s) {
    add_streams(s, s->shape.term, false);
    if (s->shape.guard)
        add_streams(s, s->shape.guard, false);
    for (size_t i = 0; i < s->in->task->nstatements; i++)
        if (&s->in->task->statements[i] != s->fold)
            add_streams(s, s->in->task->statements[i].body, true);
}

/* Reads that are not streams, at positions where there may be nothing to read. */
static bool reads_beyond(const struct scan *s, const struct expr *e) {
    bool held = false;
    for (size_t i = 0; i < s->nstreams; i++)
        held |= expr_same(s->streams[i].read, e);
    if (held)
        return false;
    if (e->kind == EXPR_READ && (expr_vars(e) >> s->shape.axis & 1))
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (reads_beyond(s, e->args[i]))
            return true;
    return false;
}

/* ---- pieces ---- */

static const struct expr *axis_extent(const struct scan *s) {
    return statement_extent(s->in->task, s->fold, s->shape.axis);
}

static str element_type(const struct scan *s, size_t tensor) {
    enum dtype t = s->in->task->tensors[tensor].dtype;
    bool kept = t == DTYPE_F64 && tensor >= s->sh->briefing->inst->task->ntensors;
    return str_view(dtype_info(kept ? DTYPE_F32 : t)->cuda);
}

/* Elements of a vector lie along the axis. */
static bool steps_within(const struct scan *s) {
    return s->inner && s->width > 1;
}

/* The index on the axis that belongs to a position: of element `elem` of a vector, or of its first
 * in memory. */
static str index_text(struct scan *s, bool element) {
    element = element && steps_within(s);
    if (!s->shape.reverse)
        return element ? S("(position + elem)") : S("position");
    str extent = scope_int(&s->k, axis_extent(s));
    if (element)
        return TEXT(s->sh, "($ - 1 - position - elem)", extent);
    return TEXT(s->sh, "($ - $ - position)", extent, sheet_number(s->sh, s->inner ? s->width : 1));
}

/* The variables at an element, or at the first of a vector. */
static void place_variables(struct scan *s, bool element) {
    for (size_t v = 0; v < s->fold->nindex; v++)
        s->k.var[v] = scope_variable(&s->k, v);
    if (!s->inner && s->width > 1 && element)
        s->k.var[s->last] = TEXT(s->sh, "($ + elem)", s->k.var[s->last]);
    s->k.var[s->shape.axis] = index_text(s, element);
}

/* Where element `elem` of a vector stands in its pack. */
static str pack_index(const struct scan *s) {
    if (!s->shape.reverse || !steps_within(s))
        return S("elem");
    return TEXT(s->sh, "$ - elem", sheet_number(s->sh, s->width - 1));
}

static bool is_streamed(const struct scan *s, size_t i) {
    return !s->totals || !s->streams[i].late;
}

static void put_streams(struct scan *s, struct slots *t) {
    place_variables(s, false);
    slots_list(t, "streams");
    for (size_t i = 0; i < s->nstreams; i++) {
        const struct expr *read = s->streams[i].read;
        if (!is_streamed(s, i))
            continue;
        struct slots *row = slots_row(t, "streams");
        slots_put(row, "element_type", element_type(s, read->ref));
        slots_put(row, "now", s->streams[i].now);
        slots_put(row, "next", s->streams[i].next);
        slots_put(row, "loads", s->prefetch ? s->streams[i].next : s->streams[i].now);
        slots_put(row, "from", scope_pointer(&s->k, read->ref, false));
        slots_put(row, "offset", scope_offset_text(&s->k, read));
    }
}

static void hold_streams(struct scan *s) {
    str at = pack_index(s);
    for (size_t i = 0; i < s->nstreams; i++) {
        const struct expr *read = s->streams[i].read;
        str element = TEXT(s->sh, "$[item].at[$]", s->streams[i].now, at);
        if (is_streamed(s, i))
            scope_hold(&s->k, read, scope_unpacked(&s->k, read->ref, element));
    }
}

/* The term at an element, the identity where `valid` does not hold. */
static str term_text(struct scan *s, str valid) {
    struct sheet *sh = s->sh;
    place_variables(s, true);
    hold_streams(s);
    str value = scope_text(&s->k, s->shape.term), and = valid.n ? S(" && ") : S("");
    if (s->shape.exclusive && reads_beyond(s, s->shape.term)) {
        str at = steps_within(s) ? S("position + elem") : S("position");
        valid = TEXT(sh, "$$$ + 1 < $", valid, and, at, scope_int(&s->k, axis_extent(s)));
        and = S(" && ");
    }
    if (s->shape.guard)
        valid = TEXT(sh, "$$($)", valid, and, scope_text(&s->k, s->shape.guard));
    bool bare = str_find(value, S(" ")) == value.n;
    return valid.n ? TEXT(sh, bare ? "$ ? $ : $" : "$ ? ($) : $", valid, value, s->identity)
                   : value;
}

/* The results of one vector: the lines of an element before it is stored, and the stores. */
static bool put_results(struct scan *s, struct slots *t) {
    struct maps maps;
    place_variables(s, true);
    hold_streams(s);
    bool ok = maps_write(&s->k, s->fold, S("value"), t, &maps);
    place_variables(s, false);
    for (size_t i = 0; ok && i < maps.n; i++) {
        struct slots *row = slots_row(t, "results");
        str to = scope_pointer(&s->k, maps.out[i].tensor, true);
        slots_put(row, "element_type", element_type(s, maps.out[i].tensor));
        slots_put(row, "to", to);
        str name = scope_pointer_name(&s->k, maps.out[i].tensor);
        slots_put(row, "pack", sheet_name(s->sh, TEXT(s->sh, "$_pack", name)));
        slots_put(row, "element", pack_index(s));
        slots_put(row, "packed", maps.out[i].packed);
        slots_put(row, "place", scope_place_text(&s->k));
    }
    return ok && !sheet_failed(s->sh);
}

/* ---- a kernel ---- */

static uint32_t kept_vars(const struct scan *s) {
    return ((UINT32_C(1) << s->fold->nindex) - 1) & ~(UINT32_C(1) << s->shape.axis);
}

/* Rows, or columns: the product of the other extents. */
static str lines_plan(struct scan *s) {
    return place_count(s->sh, s->in, s->fold, kept_vars(s));
}

static str axis_plan(struct scan *s) {
    return sheet_plan(s->sh, axis_extent(s));
}

/* Begins a kernel named after the fold; `t` has what all of them need. Positions go from `begin` to
 * `end`: of the block's part, or of the whole axis. */
static void begin_kernel(struct scan *s, struct slots *t) {
    str name = s->in->task->tensors[s->fold->tensor].name;
    scope_init(&s->k, s->sh, s->st, TEXT(s->sh, s->totals ? "scan_$_totals" : "scan_$", name).p);
    s->k.statement = s->fold;
    *t = s->slots;
    slots_put(t, "kernel", s->k.name);
    slots_put(t, "index", str_view(scope_index_type(&s->k)));
    slots_flag(t, "parts", s->split > 1);
    slots_number(t, "split", s->split);
    slots_list(t, "results");
    if (!s->inner)
        slots_put(t, "columns", scope_int_plan(&s->k, "columns", lines_plan(s)));
    slots_put(t, "extent", scope_int(&s->k, axis_extent(s)));
    bool whole = s->split == 1 && !s->lookback;
    slots_put(t, "begin", whole ? S("0") : S("begin"));
    slots_put(t, "end", whole ? slots_get(t, "extent") : S("end"));
}

/* Parameters beyond those of the scope, and what they are in the launch: memory of the step's. */
struct memory {
    str params, args;
};

static bool finish_kernel(struct scan *s, struct slots *t, const char *template, str flat, str grid,
                          struct memory m) {
    struct sheet *sh = s->sh;
    str used = slots_texts(sh, t);
    for (size_t v = 0; v < s->fold->nindex; v++)
        s->k.var[v] = scope_variable(&s->k, v);
    slots_put(t, "coordinates",
              place_coordinates(&s->k, s->fold, kept_vars(s), flat, s->inner && !s->warp, used));
    slots_put(t, "params", TEXT(sh, "$$", scope_params(&s->k), m.params));
    sheet_step(sh, "launch %.*s<<<%.*s, %lld>>>(%.*s%.*s)", STR_ARG(s->k.name), STR_ARG(grid),
               (long long)s->block, STR_ARG(scope_args(&s->k)), STR_ARG(m.args));
    return sheet_put(sh, template, t, &sh->kernels);
}

/* The workspace for the totals of parts, one row or one column of parts after the other. */
static struct memory totals_memory(struct scan *s, str parts) {
    return (struct memory){TEXT(s->sh,
                                s->totals ? ", $ *totals_of_parts" : ", const $ *totals_of_parts",
                                str_view(s->type)),
                           TEXT(s->sh, ", $", parts)};
}

/* ---- rows ---- */

static int64_t chunk_size(const struct scan *s) {
    return (s->warp ? 32 : s->block) * s->items * s->width;
}

static str tiles_plan(struct scan *s) {
    return TEXT(s->sh, "ceil_div($, $)", axis_plan(s), sheet_number(s->sh, chunk_size(s)));
}

/* What a block works on, and the terms of a chunk. */
static void begin_rows(struct scan *s, struct slots *t) {
    struct sheet *sh = s->sh;
    begin_kernel(s, t);
    slots_number(t, "chunk_size", chunk_size(s));
    slots_number(t, "step", 32 * s->width);
    str vectors = sheet_number(sh, 32 * s->items);
    slots_put(t, "vector", s->warp ? S("lane") : TEXT(sh, "(warp * $ + lane)", vectors));
    slots_put(t, "first_position", s->split > 1 ? S("begin + first") : S("first"));
    slots_put(t, "term", term_text(s, TEXT(sh, "position < $", slots_get(t, "end"))));
    put_streams(s, t);
    if (s->split > 1) {
        str chunk = sheet_number(sh, chunk_size(s)), split = sheet_number(sh, s->split);
        str length = TEXT(sh, "ceil_div(ceil_div($, $), $)*$", axis_plan(s), split, chunk, chunk);
        slots_put(t, "length", scope_int_plan(&s->k, "length", length));
    }
}

/* The first of two kernels: the total of each part of each row. */
static bool write_row_totals(struct scan *s, str parts) {
    struct slots t;
    bool prefetch = s->prefetch;
    s->totals = true;
    s->prefetch = false;
    begin_rows(s, &t);
    str grid = TEXT(s->sh, "$*$", lines_plan(s), sheet_number(s->sh, s->split));
    bool ok = finish_kernel(s, &t, "scan/totals.cu", S("row"), grid, totals_memory(s, parts));
    s->totals = false;
    s->prefetch = prefetch;
    return ok;
}

static str row_value(struct scan *s) {
    struct sheet *sh = s->sh;
    str value = !s->shape.exclusive ? TEXT(sh, "$(base, sum[item][elem])", s->combine)
                : s->width == 1
                    ? S("base")
                    : TEXT(sh, "elem == 0 ? base : $(base, sum[item][elem - 1])", s->combine);
    if (s->fold->body->reduce->op != REDUCTION_MEAN)
        return value;
    return TEXT(sh,
                s->shape.exclusive ? "($) / float(position + elem)"
                                   : "($) / float(position + elem + 1)",
                value);
}

static bool write_row_scan(struct scan *s, struct memory m) {
    struct sheet *sh = s->sh;
    struct slots t;
    str rows = lines_plan(s), tiles = tiles_plan(s), chunk = sheet_number(sh, chunk_size(s));
    begin_rows(s, &t);
    if (!put_results(s, &t))
        return false;
    slots_flag(&t, "by_warp", s->warp);
    slots_flag(&t, "by_chunk", s->lookback);
    slots_flag(&t, "by_block", !s->warp && !s->lookback);
    slots_flag(&t, "prefetch", s->prefetch && s->nstreams);
    slots_put(&t, "way", s->shape.reverse ? S("from its end") : S("from its start"));
    slots_put(&t, "what", s->split > 1 ? S("a part of a row") : S("a row"));
    slots_put(&t, "loaded", s->prefetch ? TEXT(sh, "chunk + $", chunk) : S("chunk"));
    slots_put(&t, "value", row_value(s));
    if (s->warp || s->lookback)
        slots_put(&t, "rows", scope_int_plan(&s->k, "rows", rows));
    if (s->lookback)
        slots_put(&t, "tiles", scope_int_plan(&s->k, "tiles", tiles));
    str warps = sheet_number(sh, s->block / 32), split = sheet_number(sh, s->split);
    str grid = s->warp        ? TEXT(sh, "ceil_div($, $)", rows, warps)
               : s->lookback  ? TEXT(sh, "$*$", rows, tiles)
               : s->split > 1 ? TEXT(sh, "$*$", rows, split)
                              : rows;
    return finish_kernel(s, &t, "scan/rows.cu", S("row"), grid, m);
}

/* Chunks look back: who has which, and what each knows of its row. */
static bool lookback_memory(struct scan *s, struct memory *out) {
    struct sheet *sh = s->sh;
    struct slots none = {.mem = sh->mem};
    str rows = lines_plan(s), tiles = tiles_plan(s);
    str tickets = sheet_scratch(sh, S("tickets"), S("[1] : i32"));
    str progress = sheet_scratch(sh, S("progress"), TEXT(sh, "[$, $] : i64", rows, tiles));
    sheet_step(sh, "memset %.*s = 0", STR_ARG(tickets));
    sheet_step(sh, "memset %.*s = 0", STR_ARG(progress));
    *out = (struct memory){S(", int *tickets, long long *progress"),
                           TEXT(sh, ", $, $", tickets, progress)};
    return sheet_function(sh, "scan/state.cu", &none);
}

static bool write_rows(struct scan *s) {
    struct sheet *sh = s->sh;
    struct memory m = {S(""), S("")};
    if (s->split > 1) {
        str parts = sheet_scratch(
            sh, S("parts"),
            TEXT(sh, "[$, $] : $", lines_plan(s), sheet_number(sh, s->split), str_view(s->memory)));
        if (!write_row_totals(s, parts))
            return false;
        m = totals_memory(s, parts);
    }
    return (!s->lookback || lookback_memory(s, &m)) && write_row_scan(s, m);
}

/* ---- columns ---- */

static str column_value(struct scan *s) {
    str value = TEXT(s->sh, "$(carry[elem], sum[elem])", s->combine);
    if (s->fold->body->reduce->op != REDUCTION_MEAN)
        return value;
    return TEXT(s->sh, s->shape.exclusive ? "$ / float(position)" : "$ / float(position + 1)",
                value);
}

static bool write_column_kernel(struct scan *s, str parts) {
    struct sheet *sh = s->sh;
    struct slots t;
    str columns = lines_plan(s), width = sheet_number(sh, s->width);
    begin_kernel(s, &t);
    slots_number(&t, "stretch", STRETCH);
    slots_flag(&t, "totals", s->totals);
    slots_flag(&t, "starts_behind", s->split > 1 && !s->totals);
    slots_flag(&t, "exclusive", s->shape.exclusive && !s->totals);
    if (!s->totals && !put_results(s, &t))
        return false;
    slots_put(&t, "value", column_value(s));
    slots_put(&t, "term", term_text(s, S("")));
    put_streams(s, &t);
    str what = s->width == 1 ? S("a column") : TEXT(sh, "$ neighbouring columns", width);
    slots_put(&t, "does", s->totals ? S("folds") : S("scans"));
    slots_put(&t, "what", s->split > 1 ? TEXT(sh, "a part of $", what) : what);
    str grid = TEXT(sh, "ceil_div($, $)", columns, sheet_number(sh, s->block * s->width));
    struct memory m = {S(""), S("")};
    if (s->split > 1) {
        str split = sheet_number(sh, s->split);
        str length = TEXT(sh, "ceil_div($, $)", axis_plan(s), split);
        slots_put(&t, "length", scope_int_plan(&s->k, "length", length));
        grid = TEXT(sh, "[$, $]", grid, split);
        m = totals_memory(s, parts);
    }
    return finish_kernel(s, &t, "scan/columns.cu", S("column"), grid, m);
}

static bool write_columns(struct scan *s) {
    struct sheet *sh = s->sh;
    if (s->split == 1)
        return write_column_kernel(s, S(""));
    str parts = sheet_scratch(
        sh, S("parts"),
        TEXT(sh, "[$, $] : $", sheet_number(sh, s->split), lines_plan(s), str_view(s->memory)));
    s->totals = true;
    bool ok = write_column_kernel(s, parts);
    s->totals = false;
    return ok && write_column_kernel(s, parts);
}

/* ---- the step ---- */

static void choose_types(struct scan *s) {
    bool real = s->fold->body->value_kind == VALUE_REAL;
    bool product = s->fold->body->reduce->op == REDUCTION_PROD;
    s->type = !real ? "long long" : product ? "double" : "float";
    s->value = real ? "float" : "long long";
    s->memory = !real ? "i64" : product ? "f64" : "f32";
    s->identity = real && product ? S("1.0") : fold_start(s->fold);
}

/* No more threads to a row, and no more parts of it, than it has work for. */
static void fit_axis(struct scan *s) {
    int64_t length = s->in->tensors[s->fold->tensor].extent[s->shape.axis];
    int64_t each = s->width * s->items;
    while (s->inner && !s->warp && s->block > 64 && s->block / 2 * each >= length)
        s->block /= 2;
    int64_t chunk = s->inner ? s->block * each : COLUMN_LEAST;
    int64_t most = (length + chunk - 1) / chunk;
    s->split = s->split < most ? s->split : most;
}

static void decide(struct scan *s) {
    const struct inst *in = s->in;
    struct sheet *sh = s->sh;
    s->block = sheet_decision(sh, "block", 256);
    s->items = sheet_decision(sh, "items", 2);
    s->split = sheet_decision(sh, "scan-split", 1);
    s->warp = s->inner && sheet_decision(sh, "scan-warp", 0) != 0;
    s->prefetch = s->inner && sheet_decision(sh, "prefetch", 1) != 0;
    bool small = str_is(str_view(s->type), "float");
    s->lookback = s->inner && small && !s->warp && sheet_decision(sh, "scan-lookback", 0) != 0;
    s->prefetch = s->prefetch && !s->lookback;
    s->split = s->warp || s->lookback ? 1 : s->split;
    s->width = pieces_width(sheet_decision(sh, "vector-width", 4),
                            &in->tensors[s->fold->tensor].extent[s->last], 1);
    while (s->width > 1 &&
           !inst_divides(in, statement_extent(in->task, s->fold, s->last), s->width))
        s->width /= 2;
    if (s->width * s->items > 16)
        s->items = 16 / s->width;
    fit_axis(s);
}

static void require_width(struct scan *s) {
    const struct expr *extent = statement_extent(s->in->task, s->fold, s->last);
    str plan = sheet_plan(s->sh, extent);
    if (s->width > 1)
        sheet_require(s->sh, "%.*s %% %lld == 0", STR_ARG(plan), (long long)s->width);
}

static bool prepare(struct scan *s) {
    struct sheet *sh = s->sh;
    struct slots *t = &s->slots;
    str combined = fold_step(sh, s->fold, S("a"), S("b"));
    str key = TEXT(sh, s->inner ? "rows $ $" : "columns $ $", str_view(s->type), combined);
    t->mem = sh->mem;
    s->combine = sheet_shared_name(sh, TEXT(sh, "combine $", key), "combine");
    slots_put(t, "combine", s->combine);
    if (s->inner)
        slots_put(t, "warp_scan", sheet_shared_name(sh, TEXT(sh, "warp_scan $", key), "warp_scan"));
    slots_put(t, "combined", combined);
    slots_flag(t, "inner", s->inner);
    slots_put(t, "type", str_view(s->type));
    slots_put(t, "value_type", str_view(s->value));
    slots_put(t, "identity", s->identity);
    slots_number(t, "block", s->block);
    slots_number(t, "items", s->items);
    slots_number(t, "width", s->width);
    slots_number(t, "last", s->width - 1);
    slots_number(t, "warps", s->block / 32);
    slots_number(t, "last_warp", s->block / 32 - 1);
    find_streams(s);
    require_width(s);
    return sheet_function(sh, "scan/functions.cu", t);
}

static void put_note(struct scan *s) {
    str name = s->in->task->tensors[s->fold->tensor].name;
    if (s->inner)
        sheet_note(s->sh, "scan: %.*s: %lld threads a block, %lld vector%s of %lld a thread%s%s",
                   STR_ARG(name), (long long)s->block, (long long)s->items, s->items > 1 ? "s" : "",
                   (long long)s->width, s->prefetch ? ", the next chunk loaded ahead" : "",
                   s->warp        ? ", a warp a row"
                   : s->lookback  ? ", chunks look back"
                   : s->split > 1 ? ", rows in parts"
                                  : ", a block a row");
    else
        sheet_note(
            s->sh,
            "scan: %.*s: %lld threads a block, %lld column%s a thread, %lld rows at a time%s",
            STR_ARG(name), (long long)s->block, (long long)s->width, s->width > 1 ? "s" : "",
            (long long)s->items, s->split > 1 ? ", the axis in parts" : "");
    const struct used all[] = {
        {"block", s->block},
        {"items", s->items},
        {"vector-width", s->width},
        {"scan-split", s->split},
        {"scan-warp", s->warp},
        {"prefetch", s->prefetch},
        {"scan-lookback", s->lookback},
    };
    sheet_used(s->sh, all, sizeof all / sizeof *all);
}

static bool write(struct sheet *sh, const struct step *st) {
    struct scan s = {.sh = sh, .st = st, .in = st->inst, .fold = fold_find(st->inst->task)};
    if (!s.fold || !recognise(s.in, s.fold, sh->mem, &s.shape))
        return err_set(sh->err, ERR_INPUT, "a scan that is none");
    s.last = s.fold->nindex - 1;
    s.inner = s.shape.axis == s.last;
    choose_types(&s);
    decide(&s);
    if (!prepare(&s))
        return false;
    put_note(&s);
    return s.inner ? write_rows(&s) : write_columns(&s);
}

/* ---- for planners ---- */

static bool scan_facts(const struct briefing *b, const struct step *st, struct step_facts *out) {
    const struct statement *fold = fold_find(st->inst->task);
    struct scan_shape shape;
    struct arena *a = arena_new(8u << 20);
    bool scans = fold && recognise(st->inst, fold, a, &shape);
    arena_free(a);
    if (!scans)
        return false;
    const struct bound_tensor *y = &st->inst->tensors[fold->tensor];
    bool real = fold->body->value_kind == VALUE_REAL;
    out->value[STEP_INNERMOST] = shape.axis + 1 == fold->nindex;
    out->value[STEP_LENGTH] = y->extent[shape.axis];
    out->value[STEP_LINES_PER_SM] = (int64_t)y->count / y->extent[shape.axis] / b->gpu->sms;
    out->value[STEP_LOOKS_BACK] = real && fold->body->reduce->op != REDUCTION_PROD;
    return true;
}

const struct family family_scan = {
    .name = "scan", .workload = WORKLOAD_SCAN, .facts = scan_facts, .claim = claim, .write = write};
