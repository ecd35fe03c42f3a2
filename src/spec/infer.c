/* Two rules, in this order.
 *
 * What a variable indexes: it runs over the first dimension that it indexes all by itself, in
 * reading order.
 *
 * How a let is read: an index of a let that indexes nothing by itself runs as far as the let is
 * read. Each read gives an end, an expression over dimensions; the largest of them is the extent,
 * where it is the largest at all sizes. Dimensions are at least 1, so 2*N is at least N and N + 1,
 * while of N and M neither is the larger, and that is an error which names both reads. Reads that
 * give no end, at places from data and beyond a pad's edge, say nothing; whether they stay inside
 * is proved with all others (bounds.h).
 *
 * Either rule may settle what the other one needs, so they alternate until nothing changes. */
#include "spec/infer.h"

#include "base/checked.h"
#include "spec/scalar.h"
#include <stdio.h>

/* ---- integer expressions over dimensions as sums: constant + coef·atom + … ---- */

enum { TERMS_MOST = 8 };

struct sum {
    int64_t constant;
    struct {
        const struct expr *atom; /* a dimension, or what is no sum */
        int64_t coef;            /* not 0 */
    } term[TERMS_MOST];
    size_t n;
};

/* `to` += coef·atom; a NULL atom is the constant. */
static bool sum_add_term(struct sum *to, const struct expr *atom, int64_t coef) {
    size_t i = 0;
    if (!atom)
        return add_i64(to->constant, coef, &to->constant);
    while (i < to->n && !expr_same(to->term[i].atom, atom))
        i++;
    if (i == TERMS_MOST)
        return false;
    if (i == to->n) {
        to->term[to->n].atom = atom;
        to->term[to->n++].coef = 0;
    }
    if (!add_i64(to->term[i].coef, coef, &to->term[i].coef))
        return false;
    if (to->term[i].coef == 0)
        to->term[i] = to->term[--to->n];
    return true;
}

static bool sum_add(struct sum *to, const struct sum *from, int64_t factor) {
    int64_t part;
    if (!mul_i64(from->constant, factor, &part) || !sum_add_term(to, NULL, part))
        return false;
    for (size_t i = 0; i < from->n; i++)
        if (!mul_i64(from->term[i].coef, factor, &part) ||
            !sum_add_term(to, from->term[i].atom, part))
            return false;
    return true;
}

/* Of an expression without variables and reads. */
static bool sum_of(const struct expr *e, int64_t factor, struct sum *to) {
    int64_t product;
    switch (e->kind) {
    case EXPR_NUMBER:
        return mul_i64(e->integer, factor, &product) && sum_add_term(to, NULL, product);
    case EXPR_ADD:
        return sum_of(e->args[0], factor, to) && sum_of(e->args[1], factor, to);
    case EXPR_SUB:
        return sum_of(e->args[0], factor, to) && factor != INT64_MIN &&
               sum_of(e->args[1], -factor, to);
    case EXPR_NEG:
        return factor != INT64_MIN && sum_of(e->args[0], -factor, to);
    case EXPR_MUL:
        for (size_t i = 0; i < 2; i++)
            if (e->args[i]->kind == EXPR_NUMBER)
                return mul_i64(e->args[i]->integer, factor, &product) &&
                       (product == 0 || sum_of(e->args[1 - i], product, to));
        return sum_add_term(to, e, factor);
    default:
        return sum_add_term(to, e, factor);
    }
}

/* a <= b, whatever the dimensions are: no term of the difference falls, and it is not negative
 * where all atoms are 1. Atoms that are no dimensions may be negative and must cancel. */
static bool sum_at_most(const struct sum *a, const struct sum *b) {
    struct sum d = *b;
    if (!sum_add(&d, a, -1))
        return false;
    int64_t least = d.constant;
    for (size_t i = 0; i < d.n; i++)
        if (d.term[i].atom->kind != EXPR_DIM || d.term[i].coef < 0 ||
            !add_i64(least, d.term[i].coef, &least))
            return false;
    return least >= 0;
}

/* ---- what is inferred ---- */

struct infer {
    struct parser *p;
    const struct statement *list;
    size_t n;
};

/* The variables of one statement: those of its reductions. */
struct scope {
    struct infer *f;
    const struct statement *s;
    const struct reduce_var *of[TASK_MAX_VARS];
};

static void scope_enter(struct scope *c, const struct expr *e) {
    for (size_t i = 0; e->reduce && i < e->reduce->nvars; i++)
        c->of[e->reduce->vars[i].var] = &e->reduce->vars[i];
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_part(e, i))
            scope_enter(c, expr_part(e, i));
}

static struct expr *make(struct infer *f, const struct expr *near, enum expr_kind kind,
                         struct expr *a, struct expr *b) {
    struct expr *e = arena_new_of(f->p->arena, struct expr);
    *e = (struct expr){.kind = kind, .value_kind = VALUE_INT, .at = near->at, .len = near->len};
    e->nargs = b ? 2 : 0;
    e->args = b ? arena_array(f->p->arena, struct expr *, 2) : NULL;
    if (b) {
        e->args[0] = a;
        e->args[1] = b;
    }
    return e;
}

static struct expr *make_number(struct infer *f, const struct expr *near, int64_t v) {
    struct expr *e = make(f, near, EXPR_NUMBER, NULL, NULL);
    e->integral = true;
    e->integer = v;
    e->number = (double)v;
    return e;
}

static struct expr *make_term(struct infer *f, const struct expr *near, const struct expr *atom,
                              int64_t coef) {
    struct expr *e = arena_new_of(f->p->arena, struct expr);
    *e = *atom;
    return coef == 1 ? e : make(f, near, EXPR_MUL, make_number(f, near, coef), e);
}

/* N, 2*N + 1, N - M. Its place in the text is that of `near`. */
static struct expr *sum_expr(struct infer *f, const struct expr *near, const struct sum *s) {
    struct expr *e = NULL;
    for (int negative = 0; negative < 2; negative++)
        for (size_t i = 0; i < s->n; i++) {
            int64_t coef = s->term[i].coef;
            if ((coef < 0) != (negative != 0))
                continue;
            if (e && negative)
                e = make(f, near, EXPR_SUB, e, make_term(f, near, s->term[i].atom, -coef));
            else if (e)
                e = make(f, near, EXPR_ADD, e, make_term(f, near, s->term[i].atom, coef));
            else
                e = make_term(f, near, s->term[i].atom, coef);
        }
    if (!e)
        return make_number(f, near, s->constant);
    if (s->constant < 0)
        return make(f, near, EXPR_SUB, e, make_number(f, near, -s->constant));
    return s->constant ? make(f, near, EXPR_ADD, e, make_number(f, near, s->constant)) : e;
}

/* ---- the least or the largest that an index can be ---- */

static bool bound(const struct scope *c, const struct expr *e, bool up, struct sum *out);

/* The extent of the left side's variable v; NULL: not known yet. */
static const struct expr *left_extent(const struct scope *c, size_t v) {
    const struct tensor *t = &c->f->p->task->tensors[c->s->tensor];
    for (size_t k = 0; k < t->rank; k++)
        if (c->s->position[k] == (int)v)
            return t->extent[k];
    return NULL;
}

static bool bound_variable(const struct scope *c, size_t v, bool up, struct sum *out) {
    const struct reduce_var *r = v < c->s->nindex ? NULL : c->of[v];
    const struct expr *lo = r ? r->lo : NULL, *hi = r ? r->hi : left_extent(c, v);
    if (!up)
        return !lo || bound(c, lo, false, out);
    return hi && bound(c, hi, true, out) && sum_add_term(out, NULL, -1);
}

static bool is_fixed(const struct expr *e) {
    return !expr_has(e, EXPR_REDUCE) && !expr_reads(e) && expr_vars(e) == 0;
}

/* A factor or divisor that is positive at all sizes. */
static bool is_positive(const struct expr *e) {
    return e->kind == EXPR_DIM || (e->kind == EXPR_NUMBER && e->integer > 0);
}

static bool bound_product(const struct scope *c, const struct expr *e, bool up, struct sum *out) {
    int fixed = is_positive(e->args[1]) ? 1 : 0;
    const struct expr *by = e->args[fixed], *x = e->args[1 - fixed];
    struct sum part = {0};
    if (!is_positive(by) || !bound(c, x, up, &part))
        return false;
    if (by->kind == EXPR_NUMBER)
        return sum_add(out, &part, by->integer);
    /* (coef·atom + …)·D: atoms times D, and the constant as a multiple of D. */
    if (part.constant && !sum_add_term(out, by, part.constant))
        return false;
    for (size_t i = 0; i < part.n; i++) {
        struct expr *atom = arena_new_of(c->f->p->arena, struct expr);
        *atom = *part.term[i].atom;
        struct expr *d = arena_new_of(c->f->p->arena, struct expr);
        *d = *by;
        if (!sum_add_term(out, make(c->f, e, EXPR_MUL, atom, d), part.term[i].coef))
            return false;
    }
    return true;
}

/* (A*B - 1)//B is A - 1. */
static bool quotient_of_product(const struct sum *x, const struct expr *by, struct sum *out) {
    if (x->n != 1 || x->term[0].coef != 1 || x->constant != -1 || x->term[0].atom->kind != EXPR_MUL)
        return false;
    const struct expr *product = x->term[0].atom;
    for (size_t i = 0; i < 2; i++)
        if (expr_same(product->args[i], by))
            return sum_of(product->args[1 - i], 1, out) && sum_add_term(out, NULL, -1);
    return false;
}

static bool bound_quotient(const struct scope *c, const struct expr *e, bool up, struct sum *out) {
    const struct expr *by = e->args[1];
    struct sum x = {0};
    if (!is_positive(by) || !bound(c, e->args[0], up, &x))
        return false;
    if (quotient_of_product(&x, by, out))
        return true;
    bool divides = by->kind == EXPR_NUMBER;
    for (size_t i = 0; i < x.n && divides; i++)
        divides = x.term[i].coef % by->integer == 0;
    if (!divides) {
        struct expr *d = arena_new_of(c->f->p->arena, struct expr);
        *d = *by;
        return sum_add_term(out, make(c->f, e, EXPR_FLOORDIV, sum_expr(c->f, e, &x), d), 1);
    }
    for (size_t i = 0; i < x.n; i++)
        if (!sum_add_term(out, x.term[i].atom, x.term[i].coef / by->integer))
            return false;
    int64_t whole;
    return floordiv_i64(x.constant, by->integer, &whole) && sum_add_term(out, NULL, whole);
}

/* The smaller (larger) of two, of which one end may be unknown where the other one bounds it. */
static bool bound_pick(const struct scope *c, const struct expr *e, bool up, bool smaller,
                       struct sum *out) {
    struct sum v[2] = {{0}, {0}};
    bool known[2] = {bound(c, e->args[0], up, &v[0]), bound(c, e->args[1], up, &v[1])};
    bool either = up == smaller;
    if (!known[0] || !known[1])
        return either && (known[0] || known[1]) && sum_add(out, &v[known[0] ? 0 : 1], 1);
    bool first = sum_at_most(&v[0], &v[1]), second = sum_at_most(&v[1], &v[0]);
    if (!first && !second && !either)
        return false;
    bool take_first = smaller ? first || !second : !first;
    return sum_add(out, &v[take_first ? 0 : 1], 1);
}

static bool bound_call(const struct scope *c, const struct expr *e, bool up, struct sum *out) {
    switch (e->function) {
    case FUNCTION_CLAMP:
        return bound(c, e->args[up ? 2 : 1], up, out);
    case FUNCTION_MAXIMUM:
    case FUNCTION_MINIMUM:
        return bound_pick(c, e, up, e->function == FUNCTION_MINIMUM, out);
    default:
        return false;
    }
}

static bool bound_plus(const struct scope *c, const struct expr *e, bool up, struct sum *out) {
    struct sum b = {0};
    bool minus = e->kind == EXPR_SUB;
    return bound(c, e->args[0], up, out) && bound(c, e->args[1], minus ? !up : up, &b) &&
           sum_add(out, &b, minus ? -1 : 1);
}

/* `out` is 0 before. False: nothing is known. */
static bool bound(const struct scope *c, const struct expr *e, bool up, struct sum *out) {
    if (e->value_kind != VALUE_INT)
        return false;
    if (is_fixed(e))
        return sum_of(e, 1, out);
    switch (e->kind) {
    case EXPR_INDEX:
        return bound_variable(c, e->ref, up, out);
    case EXPR_ADD:
    case EXPR_SUB:
        return bound_plus(c, e, up, out);
    case EXPR_MUL:
        return bound_product(c, e, up, out);
    case EXPR_FLOORDIV:
        return bound_quotient(c, e, up, out);
    case EXPR_MOD:
        if (!is_fixed(e->args[1]) || !up)
            return !up;
        return sum_of(e->args[1], 1, out) && sum_add_term(out, NULL, -1);
    case EXPR_CALL:
        return bound_call(c, e, up, out);
    case EXPR_REDUCE:
        return (e->reduce->op == REDUCTION_ARGMAX || e->reduce->op == REDUCTION_ARGMIN) &&
               bound_variable(c, e->reduce->vars[0].var, up, out);
    default:
        return false;
    }
}

/* ---- how a let is read ---- */

struct readers {
    size_t tensor, dim;       /* what is read, and the dimension that is asked for */
    const struct expr *first; /* NULL: no read that gives an end; else the largest so far */
    struct sum end;           /* … and its end: one more than the last place */
    const struct expr *other; /* a read whose end is neither smaller nor larger */
    struct sum other_end;
    size_t reads;
};

static void note_read(const struct scope *c, const struct expr *read, bool padded,
                      struct readers *r) {
    const struct expr *at = read->args[r->dim];
    struct sum end = {0};
    r->reads++;
    if ((padded && at->kind != EXPR_INDEX) || !bound(c, at, true, &end) ||
        !sum_add_term(&end, NULL, 1))
        return;
    if (!r->first || (!sum_at_most(&end, &r->end) && sum_at_most(&r->end, &end))) {
        r->first = read;
        r->end = end;
    } else if (!sum_at_most(&end, &r->end)) {
        r->other = read;
        r->other_end = end;
    }
}

static void find_reads(const struct scope *c, const struct expr *e, bool padded,
                       struct readers *r) {
    if (e->kind == EXPR_READ && e->ref == r->tensor)
        note_read(c, e, padded, r);
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_part(e, i))
            find_reads(c, expr_part(e, i), e->kind == EXPR_PAD && i == 0, r);
}

static struct readers readers_of(struct infer *f, size_t tensor, size_t dim) {
    struct readers r = {.tensor = tensor, .dim = dim};
    for (size_t i = 0; i < f->n; i++) {
        struct scope c = {.f = f, .s = &f->list[i]};
        scope_enter(&c, f->list[i].body);
        find_reads(&c, f->list[i].body, false, &r);
    }
    /* The largest may have come after one that it contains as well. */
    if (r.other && sum_at_most(&r.other_end, &r.end))
        r.other = NULL;
    return r;
}

static bool infer_from_readers(struct infer *f) {
    struct task *t = f->p->task;
    bool changed = false;
    for (size_t i = f->n; i-- > 0 && !changed;) {
        struct tensor *let = &t->tensors[f->list[i].tensor];
        for (size_t k = 0; k < let->rank && let->role == TENSOR_LET; k++) {
            struct readers r = {0};
            if (!let->extent[k])
                r = readers_of(f, f->list[i].tensor, k);
            if (r.first && !r.other) {
                let->extent[k] = sum_expr(f, r.first, &r.end);
                changed = true;
            }
        }
    }
    return changed;
}

/* ---- what a variable indexes ---- */

/* The extent of the first dimension that variable `v` indexes all by itself, in reading order. */
static struct expr *plain_extent(const struct task *t, const struct expr *e, size_t v) {
    for (size_t i = 0; i < expr_nparts(e); i++) {
        const struct expr *part = expr_part(e, i);
        if (!part)
            continue;
        struct expr *found = e->kind == EXPR_READ && part->kind == EXPR_INDEX && part->ref == v
                                 ? t->tensors[e->ref].extent[i]
                                 : plain_extent(t, part, v);
        if (found)
            return found;
    }
    return NULL;
}

static void infer_reductions(struct infer *f, const struct expr *e) {
    const struct reduce *r = e->reduce;
    for (size_t i = 0; r && i < r->nvars; i++)
        if (!r->vars[i].hi)
            r->vars[i].hi = plain_extent(f->p->task, e, r->vars[i].var);
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_part(e, i))
            infer_reductions(f, expr_part(e, i));
}

static void infer_from_bodies(struct infer *f) {
    for (size_t i = 0; i < f->n; i++) {
        const struct statement *s = &f->list[i];
        struct tensor *t = &f->p->task->tensors[s->tensor];
        infer_reductions(f, s->body);
        for (size_t k = 0; k < s->nindex && t->role == TENSOR_LET; k++)
            if (!t->extent[k])
                t->extent[k] = plain_extent(f->p->task, s->body, k);
    }
}

/* ---- what is left ---- */

static bool check_reductions(struct parser *p, const struct expr *e) {
    const struct reduce *r = e->reduce;
    for (size_t i = 0; r && i < r->nvars; i++)
        if (!r->vars[i].hi)
            return parse_fail(p, r->vars[i].lo->at, r->vars[i].lo->len, "state it: sum(k < N)",
                              "the range of '%.*s' does not follow from what it indexes",
                              STR_ARG(r->vars[i].name));
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (!check_reductions(p, expr_part(e, i)))
            return false;
    return true;
}

static bool readers_differ(struct infer *f, const struct statement *s, size_t k,
                           const struct readers *r) {
    struct parser *p = f->p;
    char hint[192];
    size_t line, col, other_line, other_col;
    text_position(p->lx.text, r->first->at, &line, &col);
    text_position(p->lx.text, r->other->at, &other_line, &other_col);
    snprintf(hint, sizeof hint,
             "it is read at %zu:%zu and at %zu:%zu up to ends of which neither is always the "
             "larger; state the range: let v[i < N] = …",
             line, col, other_line, other_col);
    return parse_fail(p, s->at, p->task->tensors[s->tensor].len, hint,
                      "the range of '%.*s' is not the same for all that read '%.*s'",
                      STR_ARG(s->index[k]), STR_ARG(p->task->tensors[s->tensor].name));
}

static bool check_extents(struct infer *f, const struct statement *s) {
    const struct tensor *t = &f->p->task->tensors[s->tensor];
    for (size_t k = 0; k < s->nindex && t->role == TENSOR_LET; k++) {
        if (t->extent[k])
            continue;
        struct readers r = readers_of(f, s->tensor, k);
        if (r.other)
            return readers_differ(f, s, k, &r);
        return parse_fail(f->p, s->at, t->len, "state it: let v[i < N] = …",
                          "the range of '%.*s' follows neither from what it indexes nor from how "
                          "'%.*s' is read",
                          STR_ARG(s->index[k]), STR_ARG(t->name));
    }
    return true;
}

static bool infer(struct parser *p, const struct statement *list, size_t n) {
    struct infer f = {p, list, n};
    do
        infer_from_bodies(&f);
    while (infer_from_readers(&f));
    for (size_t i = 0; i < n; i++)
        if (!check_reductions(p, list[i].body) || !check_extents(&f, &list[i]))
            return false;
    return true;
}

bool task_infer(struct parser *p) {
    struct task *t = p->task;
    return infer(p, t->definitions, t->ndefinitions) && infer(p, t->statements, t->nstatements);
}
