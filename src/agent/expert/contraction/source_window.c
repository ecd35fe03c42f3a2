/* Windows: operands whose indices are sums of the side's variables and of k's, with numbers as
 * factors, as a convolution's are. A place is then a part of the side plus a part of k. Threads run
 * along the side, so that a warp is at one k at a time; each of its lanes computes k's part for one
 * k of the tile, and the others get it by a shuffle. */
#include "agent/expert/contraction/contraction.h"
#include "spec/domain.h"

#define SHIFT_BITS 10 /* of a tested index's part of k: three fit an int */
#define SHIFT_MOST ((1 << (SHIFT_BITS - 1)) - 1)
#define SHIFTS     3

/* A dimension that only the batch runs through. */
static bool is_batch(const struct contraction *c, const struct con_operand *o, size_t d) {
    return !(expr_vars(o->read->args[d]) &
             (con_vars(&c->group[o->side], 0) | con_vars(&c->group[CON_K], 0)));
}

static bool can_leave(const struct contraction *c, const struct con_operand *o, size_t d) {
    return o->factor->kind == EXPR_PAD && con_can_leave(c, o, d);
}

/* Tested parts of k must not grow with the shape, nor be more than what is packed holds: their
 * extents stand in the text. */
static bool is_fixed(const struct contraction *c, const struct affine *f) {
    int64_t reach = 0; /* either way */
    for (size_t i = 0; i < c->group[CON_K].n; i++) {
        const struct con_index *x = &c->group[CON_K].at[i];
        int64_t by = f->coef[x->var] < 0 ? -f->coef[x->var] : f->coef[x->var];
        if (by && x->extent->kind != EXPR_NUMBER)
            return false;
        reach += by * (con_value(c->in, x->extent) - 1);
    }
    return reach <= SHIFT_MOST;
}

bool con_is_window(const struct contraction *c, const struct con_operand *o) {
    size_t tested = 0;
    if (o->dense || o->nconditions)
        return false;
    for (size_t d = 0; d < o->read->nargs; d++) {
        const struct expr *e = o->read->args[d];
        struct affine f;
        if (is_batch(c, o, d) && !can_leave(c, o, d))
            continue;
        if (expr_has(e, EXPR_DIM) || expr_has(e, EXPR_READ) || !affine_of(c->in, e, &f) ||
            (can_leave(c, o, d) && (++tested > SHIFTS || !is_fixed(c, &f))))
            return false;
    }
    return true;
}

static bool fits(const struct con_config *g, size_t operand) {
    const struct con_operand *o = &g->c->operands[operand];
    return !g->c->taps && con_type(g->c, o) == g->type && g->element == 4 &&
           !con_along_k(g->c, o) && con_is_window(g->c, o);
}

/* ---- places ---- */

/* "4 * p - 2": the terms of a group's variables, the number with them if asked for. */
static str terms(struct con_writer *w, const struct affine *f, enum con_axis axis, bool number) {
    uint32_t vars = con_vars(&w->c->group[axis], 0);
    str s = S("");
    for (size_t v = 0; v < TASK_MAX_VARS; v++) {
        int64_t by = f->coef[v], size = by < 0 ? -by : by;
        if (!(vars >> v & 1) || by == 0)
            continue;
        str sign = by < 0 ? (s.n ? S(" - ") : S("-")) : s.n ? S(" + ") : S("");
        str factor = size == 1 ? S("") : TEXT(w->sh, "$ * ", sheet_number(w->sh, size));
        s = TEXT(w->sh, "$$$$", s, sign, factor, w->k.var[v]);
    }
    if (!number || !f->c)
        return s;
    return !s.n ? sheet_number(w->sh, f->c)
                : TEXT(w->sh, f->c < 0 ? "$ - $" : "$ + $", s,
                       sheet_number(w->sh, f->c < 0 ? -f->c : f->c));
}

static str add_term(struct con_writer *w, str sum, str at, const struct expr *stride) {
    bool sign = str_find(at, S(" ")) < at.n || (at.n && at.p[0] == '-');
    if (!at.n)
        return sum;
    str by = scope_int(&w->k, stride);
    return sheet_join(w->sh, sum, " + ",
                      str_is(by, "1") ? at : TEXT(w->sh, sign ? "($) * $" : "$ * $", at, by));
}

/* What a thread adds up: the batch's part is in the pointer, the side's in `base`. */
struct window {
    const struct con_operand *o;
    str base, by_k;                /* the side's part of the place; k's */
    str own[SHIFTS], size[SHIFTS]; /* of the indices that may leave: the side's part, the extent */
    size_t tested;
    str shift; /* k's parts of them, packed; empty: k does not matter */
};

/* An index that may leave its dimension: the thread's part has a name, k's is packed. */
static str put_tested(struct con_writer *w, struct window *x, str own, str of_k, str size,
                      struct slots *s) {
    struct slots *row = slots_row(s, "tested");
    str number = sheet_number(w->sh, (int64_t)x->tested);
    str name = TEXT(w->sh, "tested$_$", number, slots_get(s, "name"));
    str bits = sheet_number(w->sh, (int64_t)(SHIFT_BITS * x->tested));
    slots_put(row, "number", number);
    slots_put(row, "own", own.n ? own : S("0"));
    if (of_k.n)
        x->shift = sheet_join(
            w->sh, x->shift, " | ",
            TEXT(w->sh, "(($) & $) << $", of_k, sheet_number(w->sh, (1 << SHIFT_BITS) - 1), bits));
    x->own[x->tested] = name;
    x->size[x->tested++] = size;
    return name;
}

static str test_text(struct con_writer *w, const struct window *x, str flat) {
    str s = TEXT(w->sh, "$ < $ && by_k != INT_MIN", flat, w->total[x->o->side]);
    for (size_t i = 0; i < x->tested; i++) {
        str left = sheet_number(w->sh, 32 - SHIFT_BITS * (int64_t)(i + 1));
        str at =
            x->shift.n ? TEXT(w->sh, "($ + (shift_k << $ >> 22))", x->own[i], left) : x->own[i];
        s = TEXT(w->sh, "$ && (unsigned)$ < (unsigned)$", s, at, x->size[i]);
    }
    return s;
}

/* One dimension: its part of the side and of k, and the test of both together. */
static void put_dimension(struct con_writer *w, struct window *x, size_t d, struct slots *s) {
    const struct tensor *t = &w->c->in->task->tensors[x->o->read->ref];
    struct affine f;
    if (!affine_of(w->c->in, x->o->read->args[d], &f))
        return;
    str own = terms(w, &f, x->o->side, true), of_k = terms(w, &f, CON_K, false);
    if (can_leave(w->c, x->o, d))
        own = put_tested(w, x, own, of_k, scope_int(&w->k, t->extent[d]), s);
    x->base = add_term(w, x->base, own, con_stride(w->c, x->o, (int)d));
    x->by_k = add_term(w, x->by_k, of_k, con_stride(w->c, x->o, (int)d));
}

/* The part of the tensor that one batch sees is indexed by int. */
static void require_small(struct con_writer *w, const struct con_operand *o) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    struct expr *count = expr_number(w->sh->mem, 1);
    for (size_t d = 0; d < t->rank; d++)
        if (!is_batch(w->c, o, d))
            count = expr_times(w->sh->mem, count, t->extent[d]);
    str plan = sheet_plan(w->sh, count);
    if (w->k.wide)
        sheet_require_for(w->sh, SCOPE_INT_WHY, "%.*s <= 1073741824", STR_ARG(plan));
}

/* ---- the loader ---- */

static void put_places(struct con_writer *w, struct window *x, struct slots *s) {
    str flat, flat_k, side = slots_get(s, "along");
    str sides =
        con_decode(w, x->o->side, TEXT(w->sh, "$ + tid % $", slots_get(s, "first"), side), &flat);
    slots_put(s, "before", w->decoded[x->o->side] ? S("") : sides);
    w->decoded[x->o->side] = true;
    slots_put(s, "decode_k", con_decode(w, CON_K, S("k0 + turn * 32 + tid % 32"), &flat_k));
    slots_put(s, "flat_k", flat_k);
    slots_put(s, "pointer", scope_pointer(&w->k, x->o->read->ref, false));
    slots_put(s, "offset", con_batch_offset(w, x->o));
    slots_list(s, "tested");
    for (size_t d = 0; d < x->o->read->nargs; d++)
        if (!is_batch(w->c, x->o, d) || can_leave(w->c, x->o, d))
            put_dimension(w, x, d, s);
    slots_put(s, "exists", test_text(w, x, flat));
    slots_put(s, "base", x->base.n ? x->base : S("0"));
    slots_put(s, "by_k", x->by_k.n ? x->by_k : S("0"));
    slots_put(s, "shift", x->shift);
}

static bool write_window(struct con_writer *w, size_t operand, struct slots *row) {
    struct slots s = con_loader(w, operand);
    struct window x = {.o = &w->c->operands[operand]};
    con_put_turns(w, operand, false, &s);
    slots_number(&s, "parts", (w->g.tile_k + 31) / 32);
    require_small(w, x.o);
    put_places(w, &x, &s);
    con_put_loader(w, "contraction/load_window.cu", &s, row);
    return con_copy(w, 4);
}

const struct con_source con_source_window = {
    .rank = 30, .one_by_one = true, .fits = fits, .write = write_window};
