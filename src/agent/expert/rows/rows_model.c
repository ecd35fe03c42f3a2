/* How a group's work is ordered and how its memory lies.
 *
 * Levels are the order that dependent folds force: each is a pass over the columns. Two pairs need
 * one pass instead of two: a maximum with the sum of exponentials below it, and a mean with the
 * mean of squared differences from it. A read is a pack when neighbouring columns (inner) or rows
 * (outer) are neighbours in its memory. */
#include "agent/expert/rows/rows.h"
#include "spec/bounds.h"
#include <string.h>

/* ---- names ---- */

str rows_result_name(const struct rows *r, size_t fold) {
    size_t tensor = r->g.folds[fold].s->tensor, before = 0;
    const struct tensor *t = &r->st->inst->task->tensors[tensor];
    bool memory = t->role != TENSOR_LET || r->shape.split > 1 || sheet_is_reserved(r->sh, t->name);
    for (size_t i = 0; i < fold; i++) /* a tensor may be defined in pieces */
        before += r->g.folds[i].s->tensor == tensor;
    if (!memory)
        return t->name;
    str name =
        TEXT(r->sh, "$_value$", t->name, before ? sheet_number(r->sh, (int64_t)before + 1) : S(""));
    while (sheet_has_name(r->sh, name))
        name = TEXT(r->sh, "$_", name);
    return name;
}

/* ---- levels ---- */

static bool same_guard(const struct rows_fold *a, const struct rows_fold *b) {
    return !a->guard ? !b->guard : b->guard && expr_same(a->guard, b->guard);
}

/* e - m[row], for m the result of fold a whose terms are e. */
static bool is_difference(const struct rows_fold *a, const struct expr *e) {
    return e->kind == EXPR_SUB && expr_same(e->args[0], a->term) && e->args[1]->kind == EXPR_READ &&
           e->args[1]->ref == a->s->tensor;
}

static bool is_square_of(const struct rows_fold *a, const struct expr *e) {
    if (e->kind == EXPR_CALL && e->function == FUNCTION_POW && e->args[1]->kind == EXPR_NUMBER)
        return (e->args[1]->integral ? e->args[1]->integer == 2 : e->args[1]->number == 2) &&
               is_difference(a, e->args[0]);
    return e->kind == EXPR_MUL && is_difference(a, e->args[0]) && is_difference(a, e->args[1]);
}

/* What fold b is beside fold a, when one pass makes both; PLAIN: it does not. */
static enum unit_kind pair_kind(const struct rows_fold *a, const struct rows_fold *b) {
    enum reduction first = a->s->body->reduce->op, second = b->s->body->reduce->op;
    const struct expr *e = b->term;
    if (a->s->body->value_kind != VALUE_REAL || !same_guard(a, b))
        return UNIT_PLAIN;
    if (first == REDUCTION_MAX && second == REDUCTION_SUM && e->kind == EXPR_CALL &&
        e->function == FUNCTION_EXP && is_difference(a, e->args[0]))
        return UNIT_SOFTMAX;
    if (first == REDUCTION_MEAN && (second == REDUCTION_MEAN || second == REDUCTION_SUM) &&
        is_square_of(a, e))
        return UNIT_MOMENTS;
    return UNIT_PLAIN;
}

static size_t level_by_reads(const struct rows *r, const struct expr *e) {
    size_t level = 0;
    for (size_t i = 0; e->kind == EXPR_READ && i < r->g.nfolds; i++)
        if (r->g.folds[i].s->tensor == e->ref)
            level = r->g.folds[i].level + 1;
    for (size_t i = 0; i < expr_nparts(e); i++) {
        size_t l = level_by_reads(r, expr_part(e, i));
        level = l > level ? l : level;
    }
    return level;
}

static bool is_arg(enum reduction op) {
    return op == REDUCTION_ARGMAX || op == REDUCTION_ARGMIN;
}

static void add_unit(struct rows *r, size_t fold) {
    struct rows_fold *f = &r->g.folds[fold];
    enum reduction op = f->s->body->reduce->op;
    f->level = level_by_reads(r, f->s->body);
    struct rows_level *l = &r->levels[f->level];
    bool counts = op == REDUCTION_MEAN && f->guard;
    l->units[l->nunits++] = (struct rows_unit){.kind = is_arg(op) ? UNIT_ARG : UNIT_PLAIN,
                                               .fold = fold,
                                               .second = SIZE_MAX,
                                               .field = rows_result_name(r, fold),
                                               .counts = counts};
    r->nlevels = f->level + 1 > r->nlevels ? f->level + 1 : r->nlevels;
}

/* Makes fold b part of the unit of a fold before it. */
static bool join_unit(struct rows *r, size_t b) {
    for (size_t l = 0; l < r->nlevels; l++)
        for (size_t i = 0; i < r->levels[l].nunits; i++) {
            struct rows_unit *u = &r->levels[l].units[i];
            enum unit_kind kind = pair_kind(&r->g.folds[u->fold], &r->g.folds[b]);
            if (u->kind != UNIT_PLAIN || kind == UNIT_PLAIN)
                continue;
            u->kind = kind;
            u->second = b;
            r->g.folds[b].level = l;
            return true;
        }
    return false;
}

void rows_make_levels(struct rows *r) {
    for (size_t i = 0; i < r->g.nfolds; i++)
        if (!r->shape.online || !join_unit(r, i))
            add_unit(r, i);
    for (size_t l = 0; l < r->nlevels; l++) {
        str name = sheet_printf(r->sh, l ? "%.*s_part%zu" : "%.*s_part",
                                STR_ARG(r->st->inst->task->name), l + 1);
        r->levels[l].part = sheet_name(r->sh, name);
    }
}

/* ---- reads ---- */

static bool is_result(const struct rows *r, const struct expr *e) {
    return e->kind == EXPR_READ && rows_fold_of(&r->g, e->ref);
}

static bool has_result(const struct rows *r, const struct expr *e) {
    if (is_result(r, e))
        return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (has_result(r, expr_part(e, i)))
            return true;
    return false;
}

/* Inside its tensor wherever the row and the column are inside the space. */
static bool is_plain_read(const struct rows *r, const struct expr *e) {
    const struct tensor *t = &r->st->inst->task->tensors[e->ref];
    for (size_t i = 0; i < e->nargs; i++)
        if (e->args[i]->kind != EXPR_INDEX ||
            !expr_same(r->g.extent[e->args[i]->ref], t->extent[i]))
            return false;
    return true;
}

/* g*K + k with k the given variable. */
static bool is_grouped(const struct rows *r, const struct expr *e, size_t var) {
    return e->kind == EXPR_ADD && e->args[0]->kind == EXPR_MUL && e->args[1]->kind == EXPR_INDEX &&
           e->args[1]->ref == var && expr_same(e->args[0]->args[1], r->g.extent[var]);
}

/* The indices of a read but for those of a last extent of 1, which do not count: b[k,0]. */
static size_t indices_of(const struct rows *r, const struct expr *e) {
    const struct tensor *t = &r->st->inst->task->tensors[e->ref];
    size_t n = e->nargs;
    while (n && t->extent[n - 1]->kind == EXPR_NUMBER && t->extent[n - 1]->integer == 1)
        n--;
    return n;
}

/* How many of the last reduced variables are the last indices of the read, in order. */
static size_t run_length(const struct rows *r, const struct expr *e) {
    const struct tensor *t = &r->st->inst->task->tensors[e->ref];
    size_t end = r->g.nkept + r->g.ncols, n = 0, indices = indices_of(r, e);
    for (; n < r->g.ncols && n < indices; n++) {
        const struct expr *arg = e->args[indices - 1 - n];
        size_t var = end - 1 - n;
        bool plain = arg->kind == EXPR_INDEX && arg->ref == var &&
                     expr_is_number(r->g.lo[var], 0) &&
                     expr_same(t->extent[indices - 1 - n], r->g.extent[var]);
        if (!plain)
            return n + (n + 1 == r->g.ncols && is_grouped(r, arg, var));
    }
    return n;
}

/* The indices before the run use none of its variables. */
static bool is_run(const struct rows *r, const struct expr *e, size_t n) {
    uint32_t run = ((UINT32_C(1) << n) - 1) << (r->g.nkept + r->g.ncols - n);
    for (size_t i = 0; i + n < indices_of(r, e); i++)
        if (expr_vars(e->args[i]) & run)
            return false;
    return n > 0;
}

static bool is_outer_pack(const struct rows *r, const struct expr *e) {
    int lane = rows_lane_var(&r->g);
    const struct tensor *t = &r->st->inst->task->tensors[e->ref];
    if (e->nargs == 0 || e->args[e->nargs - 1]->kind != EXPR_INDEX ||
        e->args[e->nargs - 1]->ref != (size_t)lane ||
        !expr_same(t->extent[e->nargs - 1], r->g.extent[lane]))
        return false;
    for (size_t i = 0; i + 1 < e->nargs; i++)
        if (expr_vars(e->args[i]) >> lane & 1)
            return false;
    return (expr_vars(e) >> r->g.nkept) != 0;
}

/* The read with the variables of its run at 0: where the run begins. */
static const struct expr *run_start(struct rows *r, const struct expr *e, size_t n) {
    struct expr *to = arena_new_of(r->sh->mem, struct expr);
    struct expr *map[TASK_MAX_VARS] = {NULL};
    *to = *e;
    to->args = arena_array(r->sh->mem, struct expr *, e->nargs);
    for (size_t i = 0; i < n; i++)
        map[r->g.nkept + r->g.ncols - 1 - i] = expr_number(r->sh->mem, 0);
    for (size_t i = 0; i < e->nargs; i++) {
        bool grouped = i + n == indices_of(r, e) && n && e->args[i]->kind == EXPR_ADD;
        to->args[i] = grouped ? e->args[i]->args[0] : expr_replace(e->args[i], map, r->sh->mem);
    }
    return to;
}

/* Where g*K + k begins is a multiple of the pack's size only if the tensor's own rows are. */
static void require_grouped(struct rows *r, const struct expr *e, size_t n) {
    const struct tensor *t = &r->st->inst->task->tensors[e->ref];
    size_t indices = indices_of(r, e);
    if (n == 0 || n > indices || e->args[indices - n]->kind != EXPR_ADD)
        return;
    str all = S("");
    for (size_t i = indices - n; i < indices; i++) {
        str one = sheet_plan(r->sh, t->extent[i]);
        all = sheet_join(r->sh, all, "*", one);
    }
    sheet_require(r->sh, "%.*s %% %lld == 0", STR_ARG(all), (long long)r->shape.vec);
}

static void classify_inner(struct rows *r, struct rows_read *q) {
    size_t n = r->g.ragged ? 0 : run_length(r, q->e);
    bool flat = n == r->g.ncols;
    if (!is_run(r, q->e, n) || (!r->shape.shifted && n < r->shape.suffix) ||
        (r->shape.shifted && !flat))
        return;
    str base = flat ? scope_offset_text(&r->k, run_start(r, q->e, n)) : S("");
    if (r->shape.shifted && r->shift_base.n && !str_eq(base, r->shift_base))
        return;
    if (r->shape.shifted && r->shift_base.n == 0)
        r->shift_base = base;
    else if (!r->shape.shifted && r->shape.vec > 1)
        require_grouped(r, q->e, n);
    q->kind = READ_PACK;
    q->base = base;
    q->run = n;
}

static void classify(struct rows *r, struct rows_read *q) {
    uint32_t cols = expr_vars(q->e) >> r->g.nkept;
    if (!q->safe || has_result(r, q->e))
        return;
    if (r->shape.outer) {
        if (is_outer_pack(r, q->e))
            q->kind = READ_PACK;
    } else if (cols == 0) {
        q->kind = READ_ROW;
    } else {
        classify_inner(r, q);
    }
}

static struct rows_read *find_read(struct rows *r, const struct expr *e) {
    for (size_t i = 0; i < r->nreads; i++)
        if (expr_same(r->reads[i].e, e))
            return &r->reads[i];
    return NULL;
}

static bool has_flat(const struct rows *r, const struct expr *e) {
    if (e->kind == EXPR_READ && run_length(r, e) == r->g.ncols && is_run(r, e, r->g.ncols))
        return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (has_flat(r, expr_part(e, i)))
            return true;
    return false;
}

bool rows_has_flat(struct rows *r) {
    for (size_t i = 0; i < r->g.nfolds; i++)
        if (has_flat(r, r->g.folds[i].s->body))
            return true;
    return false;
}

/* Reads of one expression. `safe`: they happen for every column. */
static void add_reads(struct rows *r, const struct expr *e, size_t pass, bool safe) {
    if (e->kind == EXPR_READ && !is_result(r, e)) {
        struct rows_read *q = find_read(r, e);
        if (!q && r->nreads < ROWS_READS) {
            q = &r->reads[r->nreads++];
            *q = (struct rows_read){.e = e};
        }
        if (q) {
            q->passes |= UINT32_C(1) << pass;
            q->safe |= safe || is_plain_read(r, e);
        }
    }
    for (size_t i = 0; i < e->nargs; i++)
        add_reads(r, e->args[i], pass,
                  safe && e->kind != EXPR_PAD && (e->kind != EXPR_IF || i == 0));
}

/* A variable that is called after a tensor: "x_row", "x2_row" for its second read. */
static str name_after(struct rows *r, size_t tensor, str number, const char *what) {
    str name = r->st->inst->task->tensors[tensor].name;
    return scope_name(&r->k, TEXT(r->sh, "$$_$", name, number, str_view(what)).p);
}

static void name_read(struct rows *r, struct rows_read *q, size_t at) {
    size_t tensor = q->e->ref, same = 0;
    for (size_t i = 0; i < at; i++)
        same += r->reads[i].e->ref == tensor;
    str number = same ? sheet_number(r->sh, (int64_t)same + 1) : S("");
    q->name = name_after(r, tensor, number, q->kind == READ_ROW ? "here" : "at");
    q->pointer = name_after(r, tensor, number, "row");
    q->cache = name_after(r, tensor, number, "kept");
}

/* A read in more passes than one, of elements that only this row has. */
static bool is_worth_keeping(const struct rows *r, const struct rows_read *q) {
    bool several = (q->passes & (q->passes - 1)) != 0;
    return q->kind == READ_PACK && several &&
           (r->g.nkept == 0 || (expr_vars(q->e) & ((UINT32_C(1) << r->g.nkept) - 1)));
}

bool rows_make_reads(struct rows *r) {
    r->nreads = 0;
    r->shift_base = S("");
    for (size_t l = 0; l < r->nlevels; l++)
        for (size_t i = 0; (r->passes >> l & 1) && i < r->levels[l].nunits; i++) {
            const struct rows_fold *f = &r->g.folds[r->levels[l].units[i].fold];
            add_reads(r, f->term, l, !f->guard);
            if (f->guard)
                add_reads(r, f->guard, l, true);
        }
    for (size_t i = 0; i < r->g.nmaps; i++)
        if (r->g.maps[i].whole)
            add_reads(r, r->g.maps[i].body, r->nlevels, true);
    for (size_t i = 0; i < r->nreads; i++) {
        struct rows_read *q = &r->reads[i];
        classify(r, q);
        name_read(r, q, i);
        q->cached = is_worth_keeping(r, q);
    }
    for (size_t i = 0; i < r->g.nmaps; i++) {
        struct rows_read *q = &r->stores[i];
        *q = (struct rows_read){.e = r->g.maps[i].place, .safe = true};
        if (!r->g.maps[i].whole)
            continue;
        classify(r, q);
        if (r->shape.vec == 1 && q->run < r->g.ncols)
            q->kind = READ_LOOSE;
        q->name = name_after(r, q->e->ref, S(""), "out");
        q->pointer = name_after(r, q->e->ref, S(""), "row");
    }
    return !sheet_failed(r->sh);
}

str rows_run_offset(struct rows *r, const struct rows_read *q) {
    return scope_offset_text(&r->k, run_start(r, q->e, q->run));
}

bool rows_is_dense(const struct rows *r, const struct rows_read *q) {
    const struct tensor *t = &r->st->inst->task->tensors[q->e->ref];
    size_t n = r->g.nkept;
    if (q->kind != READ_PACK || q->run != r->g.ncols || t->rank != n + r->g.ncols)
        return false;
    for (size_t i = 0; i < t->rank; i++) {
        const struct expr *a = q->e->args[i];
        if (a->kind != EXPR_INDEX || a->ref != i || !expr_same(t->extent[i], r->g.extent[i]))
            return false;
    }
    return true;
}

uint32_t rows_run_columns(const struct rows *r, const struct rows_read *q) {
    uint32_t run = ((UINT32_C(1) << q->run) - 1) << (r->g.nkept + r->g.ncols - q->run);
    return expr_vars(q->e) & ~run & ~((UINT32_C(1) << r->g.nkept) - 1);
}

/* ---- variables ---- */

const char *rows_row_type(const struct rows *r) {
    return r->short_rows ? "int" : "long long";
}
const char *rows_col_type(const struct rows *r) {
    return r->short_cols ? "int" : "long long";
}

struct expr *rows_product(struct rows *r, size_t from, size_t to) {
    struct expr *e = NULL;
    for (size_t i = from; i < to; i++)
        e = e ? expr_pair(r->sh->mem, EXPR_MUL, e, r->g.extent[i]) : r->g.extent[i];
    return e;
}

/* An integer of the plan as one of the type that counts rows or columns. */
str rows_size_text(struct rows *r, const struct expr *e, bool is_short) {
    str s = scope_int(&r->k, e);
    return is_short && r->k.wide ? TEXT(r->sh, "(int)$", s) : s;
}

struct digits { /* variables as the digits of a number, the last one fastest */
    size_t var[TASK_MAX_VARS], n;
    bool is_short;
};

static struct expr *digits_below(struct rows *r, const struct digits *d, size_t at) {
    struct expr *e = NULL;
    for (size_t i = at + 1; i < d->n; i++) {
        struct expr *x = r->g.extent[d->var[i]];
        e = e ? expr_pair(r->sh->mem, EXPR_MUL, e, x) : x;
    }
    return e;
}

/* Digit `at` of the number. */
static str digit_text(struct rows *r, const struct digits *d, size_t at, str number) {
    BUG_IF(at >= TASK_MAX_VARS);
    struct expr *below = digits_below(r, d, at);
    str s = number;
    if (below) {
        str size = rows_size_text(r, below, d->is_short);
        s = TEXT(r->sh, "$ / $", s, size);
    }
    if (at > 0) {
        str size = rows_size_text(r, r->g.extent[d->var[at]], d->is_short);
        s = TEXT(r->sh, "$ % $", s, size);
    }
    return s;
}

static str declared(struct rows *r, str all, const char *type, str name, str value) {
    str line = TEXT(r->sh, "const $ $ = $;", str_view(type), name, value);
    return sheet_join(r->sh, all, "\n", line);
}

str rows_kept_text(struct rows *r) {
    struct digits d = {.is_short = r->short_rows};
    int lane = rows_lane_var(&r->g); /* rows are neighbours along it */
    str all = S("");
    for (size_t i = 0; i < r->g.nkept; i++)
        if ((int)i != lane)
            d.var[d.n++] = i;
    if (lane >= 0)
        d.var[d.n++] = (size_t)lane;
    if (d.n == 1) {
        r->k.var[d.var[0]] = S("row");
        return all;
    }
    for (size_t i = 0; i < d.n; i++) {
        str name = scope_variable(&r->k, d.var[i]), value = digit_text(r, &d, i, S("row"));
        r->k.var[d.var[i]] = name;
        all = declared(r, all, rows_row_type(r), name, value);
    }
    return all;
}

static str ragged_text(struct rows *r, str one) {
    size_t var = r->g.nkept;
    if (expr_is_number(r->g.lo[var], 0))
        return one;
    str lo = scope_text(&r->k, r->g.lo[var]);
    return TEXT(r->sh, "($ + $)", lo, one);
}

str rows_column_text(struct rows *r, uint32_t used, str one, str pack) {
    struct digits d = {.is_short = r->short_cols};
    str all = S("");
    if (r->g.ncols == 1) {
        r->k.var[r->g.nkept] = ragged_text(r, one);
        return all;
    }
    for (size_t i = 0; i < r->g.ncols; i++)
        d.var[d.n++] = r->g.nkept + i;
    for (size_t i = 0; i < d.n; i++) {
        if (!(used >> d.var[i] & 1))
            continue;
        bool same = !r->shape.shifted && i + r->shape.suffix < d.n;
        str name = scope_variable(&r->k, d.var[i]);
        str value = digit_text(r, &d, i, same ? pack : one);
        r->k.var[d.var[i]] = name;
        all = declared(r, all, rows_col_type(r), name, value);
    }
    return all;
}

uint32_t rows_columns_used(const struct rows *r, const struct expr *e) {
    uint32_t used = 0;
    for (size_t i = 0; e->kind == EXPR_READ && i < r->nreads; i++)
        if (r->reads[i].kind != READ_LOOSE && expr_same(r->reads[i].e, e))
            return 0;
    if (is_result(r, e))
        return 0;
    if (e->kind == EXPR_INDEX && e->ref >= r->g.nkept)
        used |= UINT32_C(1) << e->ref;
    for (size_t i = 0; i < expr_nparts(e); i++)
        used |= rows_columns_used(r, expr_part(e, i));
    return used;
}

/* ---- results ---- */

static void hold_result(struct rows *r, const struct expr *e, size_t from, size_t to, str index) {
    for (size_t i = 0; e->kind == EXPR_READ && i < r->g.nfolds; i++) {
        const struct rows_fold *f = &r->g.folds[i];
        if (f->s->tensor == e->ref && f->level >= from && f->level < to)
            scope_hold(&r->k, e, TEXT(r->sh, "$$", rows_result_name(r, i), index));
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        hold_result(r, expr_part(e, i), from, to, index);
}

void rows_hold_results(struct rows *r, size_t from, size_t to, str index) {
    for (size_t i = 0; i < r->g.nfolds; i++)
        hold_result(r, r->g.folds[i].s->body, from, to, index);
    for (size_t i = 0; i < r->g.nmaps; i++)
        hold_result(r, r->g.maps[i].body, from, to, index);
}
