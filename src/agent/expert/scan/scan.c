/* family_scan: what it takes, and the parts that its kernels share.
 *
 * Decisions by regime, for whoever plans (f32; an H200 has 132 SMs):
 *   many rows (1024 or more), long (over 2048): block 256, vector-width 4, items 2, prefetch 1
 *   many rows, short (up to 1024): scan-warp 1, block 128, vector-width 4, items 1
 *     (items 2 from 256 elements, 4 from 512)
 *   few long rows (under 264 blocks): scan-lookback 1, block 256, vector-width 4, items 4;
 *     integers and outer axes: scan-split so that rows times parts is about 528
 *   outer axis: block 128 (64 when columns / width is under 33,792), vector-width 4 where that
 *     leaves 16,896 threads, else 1 or 2; items 8; scan-split when there are fewer threads
 *   cache-hint 1 for tensors over 50 MB. */
#include "agent/expert/scan/scan.h"
#include "agent/expert/scan/scan_kind.h"
#include "spec/domain.h"
#include "spec/pattern.h"
#include <string.h>

#define COLUMN_LEAST 8 /* rows of a part, where threads walk down columns */

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

static const struct expr *extent_of(const struct inst *in, const struct statement *s, size_t var) {
    return in->task->tensors[s->tensor].extent[var];
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
        !expr_same(v->hi, extent_of(in, s, out->axis)))
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
        !expr_same(v->hi, extent_of(in, s, out->axis)))
        return false;
    bool less = g->kind == EXPR_LT || g->kind == EXPR_LE;
    out->reverse = less == flipped;
    out->exclusive = g->kind == EXPR_LT || g->kind == EXPR_GT;
    return true;
}

bool scan_recognise(const struct inst *in, const struct statement *s, struct arena *a,
                    struct scan_shape *out) {
    if (!form_is_fold(s) || !pattern_is_prefix(s->body) || !maps_plain_left(in->task, s) ||
        s->body->value_kind == VALUE_BOOL)
        return false;
    const struct reduce *r = s->body->reduce;
    bool bounded = expr_uses(r->vars[0].lo) || expr_uses(r->vars[0].hi);
    *out = (struct scan_shape){.axis = 0};
    if (!(bounded ? by_range(in, s, &r->vars[0], out) : by_guard(in, s, r, out)) ||
        (bounded && r->guard && (r->op == REDUCTION_MEAN || expr_has(r->guard, EXPR_REDUCE))))
        return false;
    struct expr *axis = arena_new_of(a, struct expr);
    struct expr *map[TASK_MAX_VARS] = {NULL};
    *axis = (struct expr){.kind = EXPR_INDEX, .value_kind = VALUE_INT, .ref = out->axis};
    map[r->vars[0].var] = axis;
    out->term = expr_replace(s->body->args[0], map, a);
    out->guard = bounded && r->guard ? expr_replace(r->guard, map, a) : NULL;
    return true;
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    struct arena *a = arena_new(8u << 20);
    struct scan_shape shape;
    (void)b;
    bool mine = scan_recognise(f->inst, &f->task->statements[first], a, &shape);
    arena_free(a);
    if (mine)
        maps_claim(f, done, first, take);
    return mine;
}

/* ---- streams ---- */

static bool written_here(const struct task *t, size_t tensor) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == tensor)
            return true;
    return false;
}

/* Neighbours along the innermost variable are neighbours in memory, wherever a vector begins. */
static bool is_stream(const struct scan *s, const struct expr *e) {
    const struct tensor *x = &s->in->task->tensors[e->ref];
    if (written_here(s->in->task, e->ref) || x->rank == 0 || x->role == TENSOR_INOUT ||
        !place_is_sure(s->in, s->fold, e))
        return false;
    for (size_t i = 0; i + 1 < e->nargs; i++)
        if (expr_uses(e->args[i]) >> s->last & 1)
            return false;
    return e->args[e->nargs - 1]->kind == EXPR_INDEX && e->args[e->nargs - 1]->ref == s->last;
}

static void add_streams(struct scan *s, const struct expr *e, bool late) {
    if (e->kind == EXPR_PAD)
        return;
    for (size_t i = 0; i < e->nargs; i++)
        add_streams(s, e->args[i], late);
    if (e->kind != EXPR_READ || !is_stream(s, e) || s->nstreams == SCAN_STREAMS)
        return;
    for (size_t i = 0; i < s->nstreams; i++)
        if (expr_same(s->streams[i].read, e))
            return;
    str name = s->in->task->tensors[e->ref].name;
    s->streams[s->nstreams].read = e;
    s->streams[s->nstreams].late = late;
    s->streams[s->nstreams].pack =
        sheet_name(s->sh, sheet_printf(s->sh, "%.*s_now", STR_ARG(name)));
    s->streams[s->nstreams].next =
        s->prefetch ? sheet_name(s->sh, sheet_printf(s->sh, "%.*s_next", STR_ARG(name))) : S("");
    s->nstreams++;
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
    if (e->kind == EXPR_READ && (expr_uses(e) >> s->shape.axis & 1))
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (reads_beyond(s, e->args[i]))
            return true;
    return false;
}

/* ---- pieces ---- */

static const char *element_type(const struct scan *s, size_t tensor) {
    enum dtype t = s->in->task->tensors[tensor].dtype;
    bool kept = t == DTYPE_F64 && tensor >= s->sh->briefing->inst->task->ntensors;
    return dtype_info(kept ? DTYPE_F32 : t)->cuda;
}

/* The index on the axis that belongs to a position, and of the first of a vector's elements. */
static str index_text(struct scan *s, str position, bool element) {
    str extent = scope_int(&s->k, extent_of(s->in, s->fold, s->shape.axis));
    str e = slots_get(&s->names, "e");
    bool many = s->inner && s->width > 1;
    if (!s->shape.reverse)
        return many && element ? sheet_printf(s->sh, "(%.*s + %.*s)", STR_ARG(position), STR_ARG(e))
                               : position;
    if (many && element)
        return sheet_printf(s->sh, "(%.*s - 1 - %.*s - %.*s)", STR_ARG(extent), STR_ARG(position),
                            STR_ARG(e));
    return sheet_printf(s->sh, "(%.*s - %lld - %.*s)", STR_ARG(extent),
                        (long long)(s->inner ? s->width : 1), STR_ARG(position));
}

/* The variables at an element (or at the first of a vector's). */
static void place_variables(struct scan *s, str position, bool element) {
    str e = slots_get(&s->names, "e");
    for (size_t v = 0; v < s->fold->nindex; v++)
        s->k.var[v] = scope_variable(&s->k, v);
    if (!s->inner && s->width > 1 && element)
        s->k.var[s->last] =
            sheet_printf(s->sh, "(%.*s + %.*s)", STR_ARG(s->k.var[s->last]), STR_ARG(e));
    s->k.var[s->shape.axis] = index_text(s, position, element);
}

/* Where element e of a vector stands in its pack. */
static str pack_index(const struct scan *s) {
    str e = slots_get(&s->names, "e");
    if (!s->shape.reverse || !s->inner || s->width == 1)
        return e;
    return sheet_printf(s->sh, "%lld - %.*s", (long long)s->width - 1, STR_ARG(e));
}

str scan_declare(struct scan *s) {
    struct buf b;
    buf_init(&b, 64u << 10);
    for (size_t i = 0; i < s->nstreams; i++) {
        if (s->totals && s->streams[i].late)
            continue;
        buf_printf(&b, "cp_pack<%s, %lld> %.*s[%lld]", element_type(s, s->streams[i].read->ref),
                   (long long)s->width, STR_ARG(s->streams[i].pack), (long long)s->items);
        if (s->prefetch)
            buf_printf(&b, ", %.*s[%lld]", STR_ARG(s->streams[i].next), (long long)s->items);
        buf_puts(&b, S(";\n"));
    }
    str text = sheet_keep(s->sh, &b);
    buf_release(&b);
    return text;
}

str scan_rotate(struct scan *s) {
    struct buf b;
    str m = slots_get(&s->names, "m");
    buf_init(&b, 64u << 10);
    if (s->prefetch && s->nstreams)
        buf_printf(&b, "#pragma unroll\nfor (int %.*s = 0; %.*s < %lld; %.*s++) {\n", STR_ARG(m),
                   STR_ARG(m), (long long)s->items, STR_ARG(m));
    for (size_t i = 0; s->prefetch && i < s->nstreams; i++)
        buf_printf(&b, "    %.*s[%.*s] = %.*s[%.*s];\n", STR_ARG(s->streams[i].pack), STR_ARG(m),
                   STR_ARG(s->streams[i].next), STR_ARG(m));
    buf_puts(&b, s->prefetch && s->nstreams ? S("}\n") : S(""));
    str text = sheet_keep(s->sh, &b);
    buf_release(&b);
    return text;
}

str scan_loads(struct scan *s, bool next, str condition) {
    struct buf b;
    str p = slots_get(&s->names, "p");
    buf_init(&b, 64u << 10);
    place_variables(s, p, false);
    buf_printf(&b, "if (%.*s) {\n", STR_ARG(condition));
    for (size_t i = 0; i < s->nstreams; i++) {
        const struct expr *read = s->streams[i].read;
        str m = slots_get(&s->names, "m"), to = next ? s->streams[i].next : s->streams[i].pack;
        if (s->totals && s->streams[i].late)
            continue;
        str from = scope_pointer(&s->k, read->ref, false);
        buf_printf(&b, "    %.*s[%.*s] = cp_load<%lld>(%.*s + ", STR_ARG(to), STR_ARG(m),
                   (long long)s->width, STR_ARG(from));
        scope_offset(&s->k, read, &b);
        buf_puts(&b, S(");\n"));
    }
    buf_puts(&b, S("}\n"));
    str text = s->nstreams ? sheet_keep(s->sh, &b) : S("");
    buf_release(&b);
    return text;
}

static void hold_streams(struct scan *s) {
    str m = slots_get(&s->names, "m"), at = pack_index(s);
    for (size_t i = 0; i < s->nstreams; i++) {
        const struct expr *read = s->streams[i].read;
        str element = sheet_printf(s->sh, "%.*s[%.*s].at[%.*s]", STR_ARG(s->streams[i].pack),
                                   STR_ARG(m), STR_ARG(at));
        if (!s->totals || !s->streams[i].late)
            scope_hold(&s->k, read, scope_unpacked(&s->k, read->ref, element));
    }
}

str scan_term(struct scan *s, str position, str valid) {
    bool several = s->inner && s->width > 1;
    str e = slots_get(&s->names, "e");
    place_variables(s, position, true);
    hold_streams(s);
    str value = scope_text(&s->k, s->shape.term);
    if (s->shape.exclusive && reads_beyond(s, s->shape.term)) {
        str extent = scope_int(&s->k, extent_of(s->in, s->fold, s->shape.axis));
        valid = sheet_printf(s->sh, "%.*s%s%.*s%s%.*s + 1 < %.*s", STR_ARG(valid),
                             valid.n ? " && " : "", STR_ARG(position), several ? " + " : "",
                             STR_ARG(several ? e : S("")), STR_ARG(extent));
    }
    if (s->shape.guard) {
        str guard = scope_text(&s->k, s->shape.guard);
        valid = sheet_printf(s->sh, "%.*s%s(%.*s)", STR_ARG(valid), valid.n ? " && " : "",
                             STR_ARG(guard));
    }
    bool bare = str_find(value, S(" ")) == value.n;
    return valid.n ? sheet_printf(s->sh, bare ? "%.*s ? %.*s : %.*s" : "%.*s ? (%.*s) : %.*s",
                                  STR_ARG(valid), STR_ARG(value), STR_ARG(s->identity))
                   : value;
}

bool scan_write_results(struct scan *s, str value, struct scan_results *out) {
    struct maps maps;
    struct buf b, packs, stores;
    str p = slots_get(&s->names, "p"), at = pack_index(s);
    buf_init(&b, 256u << 10);
    buf_init(&packs, 64u << 10);
    buf_init(&stores, 64u << 10);
    place_variables(s, p, true);
    hold_streams(s);
    bool ok = maps_write(&s->k, s->fold, value, &b, &maps);
    place_variables(s, p, false);
    for (size_t i = 0; ok && i < maps.n; i++) {
        size_t t = maps.out[i].tensor;
        str to = scope_pointer(&s->k, t, true);
        str pack = sheet_name(s->sh, sheet_printf(s->sh, "%.*s_pack", STR_ARG(to)));
        buf_printf(&packs, "cp_pack<%s, %lld> %.*s;\n", element_type(s, t), (long long)s->width,
                   STR_ARG(pack));
        buf_printf(&b, "%.*s.at[%.*s] = %.*s;\n", STR_ARG(pack), STR_ARG(at),
                   STR_ARG(maps.out[i].packed));
        buf_printf(&stores, "cp_store(%.*s + ", STR_ARG(to));
        ok = scope_place(&s->k, &stores);
        buf_printf(&stores, ", %.*s);\n", STR_ARG(pack));
    }
    out->element = sheet_keep(s->sh, &b);
    out->packs = sheet_keep(s->sh, &packs);
    out->stores = sheet_keep(s->sh, &stores);
    buf_release(&b);
    buf_release(&packs);
    buf_release(&stores);
    return ok;
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
    s->hint = sheet_decision(sh, "cache-hint", 0) != 0;
    bool small = str_is(str_view(s->type), "float");
    s->lookback = s->inner && small && !s->warp && sheet_decision(sh, "scan-lookback", 0) != 0;
    s->prefetch = s->prefetch && !s->lookback;
    s->split = s->warp || s->lookback ? 1 : s->split;
    s->width = pieces_width(sheet_decision(sh, "vector-width", 4),
                            &in->tensors[s->fold->tensor].extent[s->last], 1);
    if (s->width * s->items > 16)
        s->items = 16 / s->width;
    fit_axis(s);
}

static void require_width(struct scan *s) {
    const struct expr *extent = extent_of(s->in, s->fold, s->last);
    str plan = sheet_plan(s->sh, extent);
    if (s->width > 1)
        sheet_require(s->sh, "%.*s %% %lld == 0", STR_ARG(plan), (long long)s->width);
}

static const char *const local_names[] = {
    "lane", "warp",    "first",   "carry",     "chunk", "sum",   "m",     "p",      "e",
    "term", "before",  "total",   "upto",      "left",  "base",  "value", "totals", "turn",
    "sums", "earlier", "offset",  "row",       "part",  "begin", "end",   "states", "tile",
    "all",  "nearest", "seen",    "known",     "reach", "d",     "ahead", "column", "from",
    "to",   "ticket",  "combine", "warp_scan", "next",
};

static bool prepare(struct scan *s) {
    struct sheet *sh = s->sh;
    slots_names(sh, &s->names, local_names, sizeof local_names / sizeof *local_names);
    slots_put(&s->names, "type", str_view(s->type));
    slots_put(&s->names, "value_type", str_view(s->value));
    slots_put(&s->names, "identity", s->identity);
    slots_put(&s->names, "combined", fold_step(sh, s->fold, S("a"), S("b")));
    slots_number(&s->names, "block", s->block);
    slots_number(&s->names, "items", s->items);
    slots_number(&s->names, "width", s->width);
    slots_number(&s->names, "last", s->width - 1);
    slots_number(&s->names, "warps", s->block / 32);
    slots_number(&s->names, "last_warp", s->block / 32 - 1);
    find_streams(s);
    require_width(s);
    return sheet_put(sh, "scan/functions.cu", &s->names, &sh->functions) &&
           (!s->inner || sheet_put(sh, "scan/warp.cu", &s->names, &sh->functions));
}

void scan_note_used(struct scan *s) {
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

void scan_begin(struct scan *s, const char *suffix) {
    str name = s->in->task->tensors[s->fold->tensor].name;
    str kernel = sheet_printf(s->sh, "scan_%.*s%s", STR_ARG(name), suffix);
    scope_init(&s->k, s->sh, s->st, kernel.p);
    s->k.statement = s->fold;
}

static bool write(struct sheet *sh, const struct step *st) {
    struct scan s = {.sh = sh, .st = st, .in = st->inst, .fold = fold_find(st->inst->task)};
    if (!s.fold || !scan_recognise(s.in, s.fold, sh->mem, &s.shape))
        return err_set(sh->err, ERR_INPUT, "a scan that is none");
    s.last = s.fold->nindex - 1;
    s.inner = s.shape.axis == s.last;
    choose_types(&s);
    decide(&s);
    return prepare(&s) && (s.inner ? scan_write_rows(&s) : scan_write_columns(&s));
}

/* ---- for planners ---- */

#define WARP_ROW 1024 /* elements that a warp scans by itself */

enum scan_kind scan_kind_of(const struct briefing *b, const struct step *st) {
    const struct statement *fold = fold_find(st->inst->task);
    struct scan_shape shape;
    struct arena *a = arena_new(8u << 20);
    bool scans = fold && scan_recognise(st->inst, fold, a, &shape);
    arena_free(a);
    if (!scans)
        return SCAN_NONE;
    int64_t all = st->inst->tensors[fold->tensor].count;
    int64_t length = st->inst->tensors[fold->tensor].extent[shape.axis], lines = all / length;
    if (shape.axis + 1 != fold->nindex)
        return lines >= (int64_t)b->gpu->sms * 128 ? SCAN_COLUMNS : SCAN_NARROW;
    if (length <= WARP_ROW)
        return SCAN_SHORT;
    bool looks = fold->body->value_kind == VALUE_REAL && fold->body->reduce->op != REDUCTION_PROD;
    return lines >= 2 * (int64_t)b->gpu->sms ? SCAN_LONG : looks ? SCAN_FEW : SCAN_PARTS;
}

const struct family family_scan = {
    .name = "scan", .workload = WORKLOAD_SCAN, .claim = claim, .write = write};
