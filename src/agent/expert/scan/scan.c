/* family_scan: reductions over everything up to (or from) an index, which share their terms along
 * it. What is combined is an associative operator on a small state (operator.h).
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
#include "agent/expert/scan/operator.h"

#define COLUMN_LEAST 8    /* rows of a part, where threads walk down columns */
#define STRETCH      1024 /* terms of one chain down a column */

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
    struct scan_state state;
    const char *type, *memory; /* of a state, in registers and in a workspace */
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

/* ---- claiming ---- */

/* All that the expression reads is there, but for the tensor `but`. */
static bool reads_done(const struct task *t, const bool *done, const struct expr *e, size_t but) {
    if (e->kind == EXPR_READ && e->ref != but && t->tensors[e->ref].role == TENSOR_LET &&
        !form_defined_by(t, done, e->ref))
        return false;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!reads_done(t, done, expr_part(e, i), but))
            return false;
    return true;
}

/* The sum of exponentials that the running maximum `first` scales goes with it. */
static void claim_exponentials(const struct form *f, const bool *done, size_t first,
                               struct arena *a, bool *take) {
    const struct task *t = f->task;
    for (size_t i = first + 1; i < t->nstatements; i++) {
        struct scan_shape shape;
        if (!done[i] && scan_recognise(f->inst, &t->statements[i], false, a, &shape) &&
            shape.most == &t->statements[first] &&
            reads_done(t, done, t->statements[i].body, shape.most->tensor)) {
            take[i] = true;
            return;
        }
    }
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    struct arena *a = arena_new(8u << 20);
    struct scan_shape shape;
    (void)b;
    bool mine = scan_recognise(f->inst, &f->task->statements[first], false, a, &shape);
    if (mine && shape.kind == SCAN_FOLD)
        claim_exponentials(f, done, first, a, take);
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

/* Expressions of a state at an element. */
enum { PARTS_MOST = 5 };
static size_t parts_of(const struct scan *s, const struct expr **out) {
    const struct scan_shape *of = &s->shape;
    const struct expr *all[PARTS_MOST] = {of->term, of->guard, of->decay, of->power, of->restart};
    size_t n = 0;
    for (size_t i = 0; i < PARTS_MOST; i++)
        if (all[i])
            out[n++] = all[i];
    return n;
}

static void find_streams(struct scan *s) {
    const struct expr *parts[PARTS_MOST];
    size_t n = parts_of(s, parts);
    for (size_t i = 0; i < n; i++)
        add_streams(s, parts[i], false);
    if (s->shape.shift)
        add_streams(s, s->shape.shift, true);
    for (size_t i = 0; i < s->in->task->nstatements; i++)
        if (form_is_map(&s->in->task->statements[i]))
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

/* The position of an element of the axis. */
static str position_text(const struct scan *s) {
    return steps_within(s) ? S("position + elem") : S("position");
}

static str exponential_text(struct scan *s, str of) {
    return TEXT(s->sh, s->sh->fast ? "__expf($)" : "expf($)", of);
}

static str decay_text(struct scan *s) {
    const struct scan_shape *of = &s->shape;
    str a = scope_text(&s->k, of->decay);
    if (!of->steps.exponential)
        return TEXT(s->sh, "(double)($)", a);
    /* The same at every step: what it is off would add up. */
    if (!of->steps.over)
        return TEXT(s->sh, of->steps.opposite ? "exp(-(double)($))" : "exp((double)($))", a);
    return TEXT(s->sh, of->steps.opposite ? "cp_wide_exp(-($))" : "cp_wide_exp($)", a);
}

/* The state of the element alone. */
static str lifted_text(struct scan *s) {
    struct sheet *sh = s->sh;
    const struct scan_shape *of = &s->shape;
    str type = str_view(s->type), first = TEXT(sh, "$ == 0", position_text(s));
    str term = of->term ? scope_text(&s->k, of->term) : S("1.0f");
    switch (of->kind) {
    case SCAN_BEST:
        return TEXT(sh, "$($, $)", type, term, s->k.var[of->axis]);
    case SCAN_DECAY:
        if (of->steps.with_own)
            return TEXT(sh, "$($ ? 0.0 : $, (float)($ * (double)($)))", type, first, decay_text(s),
                        decay_text(s), term);
        /* exp(c*0) is NaN where c is: that must come out. */
        if (of->steps.exponential && !of->steps.over)
            return TEXT(sh, "$($ ? 0.0 * (double)($) : $, $)", type, first,
                        scope_text(&s->k, of->decay), decay_text(s), term);
        return TEXT(sh, "$($ ? 0.0 : $, $)", type, first, decay_text(s), term);
    case SCAN_EXPONENTIALS:
        return TEXT(sh, "$($, $)", type, scope_text(&s->k, of->power), term);
    case SCAN_SEGMENTS:
        return TEXT(sh, "$($, $)", type, term, scope_text(&s->k, of->restart));
    default:
        return term;
    }
}

/* Where the guard does not select the element: no term, but what else it does. */
static str unguarded_text(struct scan *s) {
    if (s->shape.kind != SCAN_SEGMENTS)
        return s->identity;
    return TEXT(s->sh, "$($, $)", str_view(s->type), fold_start(s->fold),
                scope_text(&s->k, s->shape.restart));
}

/* The state at an element, the identity where `valid` does not hold. */
static str term_text(struct scan *s, str valid) {
    struct sheet *sh = s->sh;
    const struct expr *parts[PARTS_MOST];
    bool beyond = false;
    place_variables(s, true);
    hold_streams(s);
    size_t n = parts_of(s, parts);
    for (size_t i = 0; i < n; i++)
        beyond = beyond || (parts[i] != s->shape.guard && reads_beyond(s, parts[i]));
    str value = lifted_text(s), and = valid.n ? S(" && ") : S("");
    if (s->shape.exclusive && beyond) {
        valid =
            TEXT(sh, "$$$ + 1 < $", valid, and, position_text(s), scope_int(&s->k, axis_extent(s)));
        and = S(" && ");
    }
    if (s->shape.guard && s->state.tuple)
        value =
            TEXT(sh, "(($) ? $ : $)", scope_text(&s->k, s->shape.guard), value, unguarded_text(s));
    else if (s->shape.guard)
        valid = TEXT(sh, "$$($)", valid, and, scope_text(&s->k, s->shape.guard));
    bool bare = str_find(value, S(" ")) == value.n;
    return valid.n ? TEXT(sh, bare ? "$ ? $ : $" : "$ ? ($) : $", valid, value, s->identity)
                   : value;
}

/* The result of an element, whose state is `state`. */
static str value_text(struct scan *s) {
    const struct scan_shape *of = &s->shape;
    struct sheet *sh = s->sh;
    switch (of->kind) {
    case SCAN_BEST:
        return S("state.at");
    case SCAN_EXPONENTIALS:
        if (!of->shift)
            return S("state.sum");
        return TEXT(
            sh, "state.sum * $",
            exponential_text(s, TEXT(sh, "state.most + ($)", scope_text(&s->k, of->shift))));
    case SCAN_SEGMENTS:
        if (!of->exclusive)
            return S("state.value");
        return TEXT(sh, "$ ? $ : state.value", scope_text(&s->k, of->restart), fold_start(s->fold));
    default:
        return S("state.sum");
    }
}

/* The results of one vector: the lines of an element before it is stored, and the stores. */
static bool put_results(struct scan *s, struct slots *t) {
    struct maps maps;
    place_variables(s, true);
    hold_streams(s);
    if (s->state.tuple)
        slots_put(t, "value", value_text(s));
    if (s->shape.most)
        scope_hold(&s->k, s->shape.most->body, S("state.most"));
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
    slots_flag(t, "starts_behind", s->split > 1 && !s->totals);
    slots_flag(t, "totals_alone", s->totals && s->inner && scan_is_ordered(&s->shape));
    slots_flag(t, "writes_parts", s->split > 1 && s->totals && s->state.tuple);
    slots_flag(t, "reads_parts", s->split > 1 && !s->totals && s->state.tuple);
    slots_number(t, "split", s->split);
    slots_list(t, "results");
    if (!s->inner)
        slots_put(t, "columns", scope_int_plan(&s->k, "columns", lines_plan(s)));
    slots_put(t, "extent", scope_int(&s->k, axis_extent(s)));
    bool whole = s->split == 1 && !s->lookback;
    if (s->shape.kind == SCAN_BEST)
        s->identity =
            TEXT(s->sh, "$($, $ - 1)", str_view(s->type),
                 str_view(fold_identity(
                     s->fold->body->reduce->op == REDUCTION_ARGMAX ? REDUCTION_MAX : REDUCTION_MIN,
                     str_is(str_view(s->state.number), "float"))),
                 slots_get(t, "extent"));
    slots_put(t, "identity", s->identity);
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
    if (s->state.tuple)
        return (struct memory){s->totals ? S(", void *memory_of_parts")
                                         : S(", const void *memory_of_parts"),
                               TEXT(s->sh, ", $", parts)};
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
    /* Threads that each fold elements of many chunks do not fold them in order. */
    bool ordered = scan_is_ordered(&s->shape);
    slots_flag(&t, "by_warp", false);
    slots_flag(&t, "by_chunk", false);
    slots_flag(&t, "by_block", true);
    slots_flag(&t, "prefetch", false);
    slots_put(&t, "loaded", S("chunk"));
    slots_put(&t, "way", s->shape.reverse ? S("from its end") : S("from its start"));
    slots_put(&t, "what", S("a part of a row"));
    bool ok = finish_kernel(s, &t, ordered ? "scan/rows.cu" : "scan/totals.cu", S("row"), grid,
                            totals_memory(s, parts));
    s->totals = false;
    s->prefetch = prefetch;
    return ok;
}

static str row_value(struct scan *s) {
    struct sheet *sh = s->sh;
    /* For a tuple this is the state, and the value is read off it. */
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
    slots_put(&t, s->state.tuple ? "state" : "value", row_value(s));
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
    str words = s->state.words > 1 ? TEXT(sh, ", $", sheet_number(sh, s->state.words)) : S("");
    str progress = sheet_scratch(sh, S("progress"), TEXT(sh, "[$, $$] : i64", rows, tiles, words));
    sheet_step(sh, "memset %.*s = 0", STR_ARG(tickets));
    sheet_step(sh, "memset %.*s = 0", STR_ARG(progress));
    *out = (struct memory){S(", int *tickets, long long *progress"),
                           TEXT(sh, ", $, $", tickets, progress)};
    return sheet_function(sh, "scan/state.cu", &none) &&
           (!s->state.tuple || sheet_function(sh, "scan/states.cu", &s->slots));
}

static bool write_rows(struct scan *s) {
    struct sheet *sh = s->sh;
    struct memory m = {S(""), S("")};
    if (s->split > 1) {
        str parts = sheet_scratch(sh, S("parts"),
                                  TEXT(sh, "[$, $$] : $", lines_plan(s), sheet_number(sh, s->split),
                                       s->state.bytes > 8 ? S(", 2") : S(""), str_view(s->memory)));
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
    slots_flag(&t, "exclusive", s->shape.exclusive && !s->totals);
    if (!s->totals && !put_results(s, &t))
        return false;
    slots_put(&t, s->state.tuple ? "state" : "value", column_value(s));
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
    str parts = sheet_scratch(sh, S("parts"),
                              TEXT(sh, "[$, $$] : $", sheet_number(sh, s->split), lines_plan(s),
                                   s->state.bytes > 8 ? S(", 2") : S(""), str_view(s->memory)));
    s->totals = true;
    bool ok = write_column_kernel(s, parts);
    s->totals = false;
    return ok && write_column_kernel(s, parts);
}

/* ---- the step ---- */

static void choose_types(struct scan *s) {
    static const char *const bases[] = {[SCAN_BEST] = "scan_best",
                                        [SCAN_DECAY] = "scan_decay",
                                        [SCAN_EXPONENTIALS] = "scan_exponentials",
                                        [SCAN_SEGMENTS] = "scan_segment"};
    static const char *const starts[] = {
        [SCAN_DECAY] = "$(1.0, 0.0f)", [SCAN_EXPONENTIALS] = "$(-INFINITY, 0.0f)"};
    struct scan_state *of = &s->state;
    enum scan_kind kind = s->shape.kind;
    bool real = s->fold->body->value_kind == VALUE_REAL;
    *of = scan_state_of(&s->shape);
    bool product = str_is(str_view(of->number), "double");
    s->memory = of->bytes == 4 ? "f32" : !of->tuple && real ? "f64" : "i64";
    if (!of->tuple) {
        s->type = of->number;
        s->identity = product ? S("1.0") : fold_start(s->fold);
        return;
    }
    str key = TEXT(s->sh, "$ $", str_view(bases[kind]), str_view(of->number));
    s->type =
        arena_printf(s->sh->mem, "%.*s", STR_ARG(sheet_shared_name(s->sh, key, bases[kind]))).p;
    if (kind == SCAN_SEGMENTS)
        s->identity =
            TEXT(s->sh, "$($, 0)", str_view(s->type), product ? S("1.0") : fold_start(s->fold));
    else if (kind != SCAN_BEST)
        s->identity = TEXT(s->sh, starts[kind], str_view(s->type));
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
    s->lookback =
        s->inner && s->state.words && !s->warp && sheet_decision(sh, "scan-lookback", 0) != 0;
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

/* The fields of a state as words of 32 bits, or back from `bits`. */
static str words_text(struct scan *s, bool packed) {
    str all = S("");
    for (int i = 0; i < 2; i++) {
        bool real = str_is(str_view(s->state.field[i].type), "float");
        str name = str_view(s->state.field[i].name), bits = sheet_number(s->sh, i);
        str one = packed ? TEXT(s->sh, real ? "__float_as_uint(v.$)" : "(unsigned)v.$", name)
                         : TEXT(s->sh, real ? "__uint_as_float(bits[$])" : "(int)bits[$]", bits);
        all = sheet_join(s->sh, all, ", ", one);
    }
    return all;
}

/* What the functions of a state ask for. */
static void put_state(struct scan *s, struct slots *t) {
    struct sheet *sh = s->sh;
    const struct scan_shape *of = &s->shape;
    str type = str_view(s->type);
    slots_flag(t, "tuple", s->state.tuple);
    slots_put(t, "shuffle_up", S("__shfl_up_sync"));
    slots_put(t, "shuffle", S("__shfl_sync"));
    slots_put(t, "publish", S("cp_publish"));
    slots_put(t, "words_of", S(""));
    slots_flag(t, "best", of->kind == SCAN_BEST);
    slots_flag(t, "decays", of->kind == SCAN_DECAY);
    slots_flag(t, "exponentials", of->kind == SCAN_EXPONENTIALS);
    slots_flag(t, "segments", of->kind == SCAN_SEGMENTS);
    if (!s->state.tuple)
        return;
    slots_put(t, "first_type", str_view(s->state.field[0].type));
    slots_put(t, "first_field", str_view(s->state.field[0].name));
    slots_put(t, "second_type", str_view(s->state.field[1].type));
    slots_put(t, "second_field", str_view(s->state.field[1].name));
    slots_put(t, "above", s->fold->body->reduce->op == REDUCTION_ARGMAX ? S(">") : S("<"));
    slots_put(t, "exp", sh->fast ? S("__expf") : S("expf"));
    slots_number(t, "words", s->state.words);
    slots_put(t, "words_of", TEXT(sh, " * $", sheet_number(sh, s->state.words)));
    slots_put(t, "packed",
              of->kind == SCAN_DECAY ? S("(unsigned)__double2loint(v.decay), "
                                         "(unsigned)__double2hiint(v.decay), "
                                         "__float_as_uint(v.sum)")
                                     : words_text(s, true));
    slots_put(t, "unpacked",
              of->kind == SCAN_DECAY
                  ? S("__hiloint2double((int)bits[1], (int)bits[0]), __uint_as_float(bits[2])")
                  : words_text(s, false));
    static const char *const names[] = {"shuffle_up", "shuffle", "publish", "observe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        slots_put(t, names[i],
                  sheet_shared_name(sh, TEXT(sh, "$ $", str_view(names[i]), type),
                                    arena_printf(sh->mem, "%s_state", names[i]).p));
    if (of->kind == SCAN_EXPONENTIALS)
        sheet_helper(sh, "maximum");
}

/* Two states, or two values, combined. */
static str combined_text(struct scan *s) {
    bool parts = s->shape.kind == SCAN_SEGMENTS;
    if (s->state.tuple && !parts)
        return sheet_printf(s->sh, "%d %d", (int)s->shape.kind,
                            (int)s->fold->body->reduce->op); /* a key, no text */
    return fold_step(s->sh, s->fold, parts ? S("a.value") : S("a"), parts ? S("b.value") : S("b"));
}

static bool prepare(struct scan *s) {
    struct sheet *sh = s->sh;
    struct slots *t = &s->slots;
    str combined = combined_text(s);
    str key = TEXT(sh, s->inner ? "rows $ $" : "columns $ $", str_view(s->type), combined);
    t->mem = sh->mem;
    s->combine = sheet_shared_name(sh, TEXT(sh, "combine $", key), "combine");
    slots_put(t, "combine", s->combine);
    if (s->inner)
        slots_put(t, "warp_scan", sheet_shared_name(sh, TEXT(sh, "warp_scan $", key), "warp_scan"));
    slots_put(t, "combined", combined);
    slots_flag(t, "inner", s->inner);
    slots_put(t, "type", str_view(s->type));
    slots_put(t, "value_type", str_view(s->state.value));
    slots_put(t, "result_type", str_view(s->state.tuple ? s->state.value : s->type));
    slots_number(t, "block", s->block);
    slots_number(t, "items", s->items);
    slots_number(t, "width", s->width);
    slots_number(t, "last", s->width - 1);
    slots_number(t, "warps", s->block / 32);
    slots_number(t, "last_warp", s->block / 32 - 1);
    put_state(s, t);
    find_streams(s);
    require_width(s);
    return (!s->state.tuple || sheet_function(sh, "scan/tuple.cu", t)) &&
           sheet_function(sh, "scan/functions.cu", t);
}

static void put_note(struct scan *s) {
    static const char *const kinds[] = {[SCAN_FOLD] = "",
                                        [SCAN_BEST] = ", places of extremes",
                                        [SCAN_DECAY] = ", a recurrence",
                                        [SCAN_EXPONENTIALS] = ", a sum of exponentials",
                                        [SCAN_SEGMENTS] = ", by segments"};
    str name = TEXT(s->sh, "$$", s->in->task->tensors[s->fold->tensor].name,
                    str_view(kinds[s->shape.kind]));
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
    struct scan s = {.sh = sh, .st = st, .in = st->inst};
    if (!scan_find(s.in, sh->mem, &s.shape))
        return err_set(sh->err, ERR_INPUT, "a scan that is none");
    s.fold = s.shape.fold;
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
    struct scan_shape shape;
    struct arena *a = arena_new(8u << 20);
    bool scans = scan_find(st->inst, a, &shape);
    if (scans) {
        const struct bound_tensor *y = &st->inst->tensors[shape.fold->tensor];
        out->value[STEP_INNERMOST] = shape.axis + 1 == shape.fold->nindex;
        out->value[STEP_LENGTH] = y->extent[shape.axis];
        out->value[STEP_LINES_PER_SM] = (int64_t)y->count / y->extent[shape.axis] / b->gpu->sms;
        out->value[STEP_LOOKS_BACK] = scan_state_of(&shape).words > 0;
    }
    arena_free(a);
    return scans;
}

const struct family family_scan = {
    .name = "scan", .workload = WORKLOAD_SCAN, .facts = scan_facts, .claim = claim, .write = write};
